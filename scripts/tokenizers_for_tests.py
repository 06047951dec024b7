"""Texts and tokenizers for scripts/oracle_tokenizer and scripts/bench_tokenizer.

The tokenizers are trained here by Hugging Face's `tokenizers` on local files, in the form of published
ones: same normalizers, patterns, models, special tokens; only their vocabularies are smaller.
"""
import collections
import json
import pathlib
import random
import struct
import sysconfig
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SCRIPTS = {  # blocks with few characters that are newer than the tables of any reader
    "latin": (0x20, 0x24F), "greek": (0x370, 0x3FF), "cyrillic": (0x400, 0x4FF), "armenian": (0x531, 0x58A), "hebrew": (0x590, 0x5F4),
    "arabic": (0x600, 0x6FF), "devanagari": (0x900, 0x97F), "bengali": (0x980, 0x9F9), "tamil": (0xB82, 0xBFA), "thai": (0xE01, 0xE5B),
    "georgian": (0x10A0, 0x10FF), "hangul letters": (0x1100, 0x11FF), "khmer": (0x1780, 0x17E9), "latin more": (0x1E00, 0x1EFF),
    "greek more": (0x1F00, 0x1FFE), "punctuation": (0x2000, 0x2052), "currency": (0x20A0, 0x20BE), "symbols": (0x2100, 0x214F),
    "numbers": (0x2150, 0x2189), "arrows": (0x2190, 0x23FA), "enclosed": (0x2460, 0x27BF), "cjk marks": (0x3000, 0x303F),
    "kana": (0x3041, 0x30FF), "ideographs": (0x4E00, 0x9FA5), "hangul": (0xAC00, 0xD7A3), "compatibility": (0xF900, 0xFAFF),
    "presentation": (0xFB00, 0xFDFB), "wide": (0xFF01, 0xFFEE), "math letters": (0x1D400, 0x1D7FF), "emoji": (0x1F300, 0x1F64F),
    "transport": (0x1F680, 0x1F6C5), "ideographs more": (0x20000, 0x2A6D6), "private": (0xE000, 0xE010)}
NEWER = {"\u061d"}  # punctuation since Unicode 14; the table of `tokenizers` for BERT is of Unicode 8
EMOJI = ["👩‍👩‍👧‍👦", "👍🏽", "🏳️‍🌈", "❤️", "1️⃣", "🇫🇷🇩🇪", "👨🏿‍🚀", "🧑‍💻"]
ODD = ["\u200d", "\u200b", "\ufeff", "\u00ad", "\u0301\u0301\u0327", "e\u0301", "\u1e9b\u0323", "\u0130", "\u212b", "\u2126", "\uac00\u11a8", "\u1100\u1161\u11a8", "\u180e",
       "\x00", "\x07", "\x1f", "\x7f", "\x85", "\ufffd", "\ufffe", "\u2028", "\u3000", "\u00a0", "ſ", "K", "ß", "Σς", "▁", "<0x41>", "<unk>", "##a", "</w>", "\r\n", "\r", "\t", "'s", "'LL", "'Re", "…"]


def local_texts():
    """Texts of this machine: licenses and Python's library. Long ones are cut into parts of a few kilobytes."""
    files = sorted(pathlib.Path("/usr/share/common-licenses").glob("*"))
    files += sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    for file in files:
        text = file.read_bytes().decode("utf-8", "replace")
        for begin in range(0, len(text), 3000):
            yield text[begin:begin + 3000]


def random_text(draw, length, added):
    """Words of one or several scripts, numbers, blanks, emoji, odd characters, added tokens."""
    parts = []
    scripts = draw.sample(list(SCRIPTS), draw.choice([1, 1, 2, 5]))
    while sum(map(len, parts)) < length:
        kind = draw.random()
        if kind < 0.6:
            low, high = SCRIPTS[draw.choice(scripts)]
            parts.append("".join(c for c in map(chr, (draw.randint(low, high) for _ in range(draw.randint(1, 9)))) if c not in NEWER and unicodedata.category(c) != "Cn"))
        elif kind < 0.68:
            parts.append(str(draw.randrange(10 ** draw.randint(1, 14))))
        elif kind < 0.74:
            parts.append(draw.choice([" ", "\n", "\t", " \n", "\r\n"]) * draw.randint(1, 20))
        elif kind < 0.8:
            parts.append(draw.choice(EMOJI))
        elif kind < 0.9:
            parts.append(draw.choice(ODD))
        else:
            parts.append(draw.choice(added))
        parts.append(draw.choice(["", " ", " ", "  "]))
    return "".join(parts)


def texts(size, added, seed=7):
    """Texts of about `size` bytes of UTF-8, two thirds from files and one third random; short and long ones."""
    draw = random.Random(seed)
    found = list(local_texts())
    draw.shuffle(found)
    made, total = ["", " ", "  ", "a", "\n"], 0
    for text in found:
        if total > size * 2 // 3:
            break
        made.append(text)
        total += len(text.encode())
    while total < size:
        made.append(random_text(draw, draw.choice([3, 20, 100, 2000]), added))
        total += len(made[-1].encode())
    return made


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
MISTRAL = O200K.replace(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def byte_level(prefix=False, regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def trained(model, trainer, sample, normalizer=None, pre_tokenizer=None):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(sample, trainer)
    return tokenizer


def bytes_bpe(sample, pre_tokenizer, special=("<|endoftext|>",), normalizer=None, vocabulary=6000, **model):
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=list(special), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer = trained(models.BPE(**model), trainer, sample, normalizer, pre_tokenizer)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def sequence(*steps):
    return pre_tokenizers.Sequence(list(steps))


def with_template(tokenizer, template, *tokens):
    tokenizer.post_processor = processors.TemplateProcessing(single=template, pair=None, special_tokens=[(t, tokenizer.token_to_id(t)) for t in tokens])
    return tokenizer


def edited(tokenizer, edit):
    text = json.loads(tokenizer.to_str())
    edit(text)
    return Tokenizer.from_str(json.dumps(text))


def gpt2(sample, **_):
    return bytes_bpe(sample, byte_level(regex=True))


def llama3(sample, **_):
    made = bytes_bpe(sample, sequence(split(LLAMA3), byte_level()), ("<|begin_of_text|>", "<|end_of_text|>"), ignore_merges=True)
    made = with_template(made, "<|begin_of_text|> $A", "<|begin_of_text|>")
    template = made.post_processor
    made.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return made


def qwen2(sample, **_):
    return bytes_bpe(sample, sequence(split(QWEN2), byte_level()), ("<|endoftext|>", "<|im_start|>", "<|im_end|>"), normalizers.NFC())


def cl100k(sample, **_):
    return bytes_bpe(sample, sequence(split(CL100K), byte_level()))


def gpt_oss(sample, **_):
    return bytes_bpe(sample, sequence(split(O200K), byte_level()), ("<|startoftext|>", "<|endoftext|>", "<|call|>"))


def mistral(sample, **_):
    return bytes_bpe(sample, sequence(split(MISTRAL), byte_level()), ("<unk>", "<s>", "</s>", "[INST]"), ignore_merges=True)


def deepseek(sample, **_):
    steps = sequence(split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK), byte_level())
    return bytes_bpe(sample, steps, ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"))


def smollm2(sample, **_):
    return bytes_bpe(sample, sequence(pre_tokenizers.Digits(True), byte_level(regex=True)), ("<|endoftext|>", "<|im_start|>", "<|im_end|>"))


def roberta(sample, **_):
    made = bytes_bpe(sample, byte_level(prefix=True, regex=True), ("<s>", "<pad>", "</s>", "<unk>"))
    made.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return made


def fallback_bpe(sample, normalizer, pre_tokenizer, for_training):
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=6000, special_tokens=["<unk>", "<s>", "</s>", *fallback], limit_alphabet=600, show_progress=False)
    made = trained(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True), trainer, sample, normalizer, for_training)

    def edit(text):
        text["added_tokens"] = [token for token in text["added_tokens"] if not token["content"].startswith("<0x")]
        text["pre_tokenizer"] = None
    made = edited(made, edit)
    if pre_tokenizer:
        made.pre_tokenizer = pre_tokenizer
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return with_template(made, "<s> $A", "<s>")


def llama2(sample, **_):
    return fallback_bpe(sample, normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None,
                        pre_tokenizers.Split("▁", "merged_with_next"))


def gemma(sample, **_):
    made = fallback_bpe(sample, normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"), pre_tokenizers.Split("▁", "merged_with_next"))
    made.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("▁▁", normalized=False), AddedToken("<table>", normalized=True)])
    return made


def llama2_metaspace(sample, **_):
    made = fallback_bpe(sample, None, None, pre_tokenizers.Metaspace())
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return made


def unigram(sample, normalizer, pre_tokenizer, special, byte_fallback=False):
    # The trainer wants every character in the vocabulary: rare ones are left out, and unknown later.
    counts = collections.Counter(c for text in sample for c in text)
    common = {c for c, _ in counts.most_common(700)}
    sample = ["".join(c for c in text if c in common) for text in sample]
    trainer = trainers.UnigramTrainer(vocab_size=4000, unk_token="<unk>", special_tokens=special, show_progress=False)
    made = trained(models.Unigram(), trainer, sample, normalizer, pre_tokenizer)
    made.decoder = decoders.Metaspace()
    if byte_fallback:
        def edit(text):
            text["model"]["byte_fallback"] = True
            low = min(score for _, score in text["model"]["vocab"])
            text["model"]["vocab"] += [[f"<0x{byte:02X}>", low - 3] for byte in range(256)]
        made = edited(made, edit)
        made.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return made


def t5(sample, **_):
    normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(left=False, right=True)])
    return with_template(unigram(sample, normalizer, pre_tokenizers.Metaspace(), ["<pad>", "</s>", "<unk>"]), "$A </s>", "</s>")


def xlm_roberta(sample, **_):
    steps = sequence(pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first"))
    made = unigram(sample, normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()]), steps, ["<s>", "<pad>", "</s>", "<unk>"], byte_fallback=True)
    made.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    return with_template(made, "<s> $A </s>", "<s>", "</s>")


def bert(sample, normalizer=None, pre_tokenizer=None):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=6000, special_tokens=special, limit_alphabet=500, show_progress=False)
    made = trained(models.WordPiece(unk_token="[UNK]"), trainer, sample, normalizer or normalizers.BertNormalizer(),
                   pre_tokenizer or pre_tokenizers.BertPreTokenizer())
    made.decoder = decoders.WordPiece()
    return with_template(made, "[CLS] $A [SEP]", "[CLS]", "[SEP]")


def bert_cased(sample, **_):
    normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.BertNormalizer(True, False, False, False)])
    made = bert(sample, normalizer, sequence(pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_previous")))
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return made


def clip(sample, **_):
    normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    trainer = trainers.BpeTrainer(vocab_size=4000, special_tokens=["<|startoftext|>", "<|endoftext|>"], end_of_word_suffix="</w>",
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    made = trained(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"), trainer, sample, normalizer,
                   sequence(split(CLIP, "removed", True), byte_level()))
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False, add_prefix_space=False)
    return made


def old_bpe(sample, **_):
    """Characters, prefixes of subwords, unknown characters one by one, every kind of added token."""
    trainer = trainers.BpeTrainer(vocab_size=4000, special_tokens=["<unk>"], limit_alphabet=300, continuing_subword_prefix="##", show_progress=False)
    made = trained(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"), trainer, sample, normalizers.NFKD(),
                   sequence(pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(False)))
    made.add_tokens([AddedToken("the", single_word=True, normalized=False), AddedToken("of", single_word=True, lstrip=True, rstrip=True, normalized=False),
                     AddedToken("ＡＢ", normalized=True), AddedToken("\t", rstrip=True, normalized=False), AddedToken("a b", normalized=False)])
    made.decoder = decoders.WordPiece("##", cleanup=False)
    return made


def lower_bpe(sample, **_):
    """Merges that cross words, matches merged with what follows, a decoder for suffixes."""
    made = bytes_bpe(sample, sequence(split(r"\s+", "merged_with_next"), split(r"\w+", "contiguous"), byte_level()),
                     normalizer=normalizers.Sequence([normalizers.Lowercase(), normalizers.NFKC()]))
    made.add_tokens([AddedToken("Program", normalized=True), AddedToken("LICENSE", single_word=True, normalized=True)])
    return made


KINDS = {f.__name__: f for f in (gpt2, llama3, qwen2, cl100k, gpt_oss, mistral, deepseek, smollm2, roberta, llama2, gemma, llama2_metaspace, t5, xlm_roberta, bert,
                                 bert_cased, clip, old_bpe, lower_bpe)}
ADDED = ["<|endoftext|>", "<|begin_of_text|>", "<|im_start|>", "<|im_end|>", "[INST]", "<s>", "</s>", "<mask>", "[MASK]", "[CLS]", "\n\n", "▁▁", "<table>", "the", "of", "of the",
         "ＡＢ", "a b", "Program", "program", "LICENSE", "<|endoftext|><|endoftext|>", "  <mask>  ", "<｜end▁of▁sentence｜>", "<|endof"]


def from_gguf(path):
    """The byte-level BPE tokenizer of a GGUF file (github.com/ggml-org/ggml, docs/gguf.md) that says it is SmolLM2's."""
    data, at = pathlib.Path(path).read_bytes(), 24
    sizes = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def read(kind):
        nonlocal at
        if kind == 8:
            size, = struct.unpack_from("<Q", data, at)
            at += 8 + size
            return data[at - size:at].decode()
        if kind == 9:
            inner, count = struct.unpack_from("<IQ", data, at)
            at += 12
            return [read(inner) for _ in range(count)]
        value, = struct.unpack_from("<" + sizes[kind], data, at)
        at += struct.calcsize("<" + sizes[kind])
        return value

    values = {}
    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        key = read(8)
        kind, = struct.unpack_from("<I", data, at)
        at += 4
        values[key] = read(kind)
    assert values["tokenizer.ggml.model"] == "gpt2" and values["tokenizer.ggml.pre"] == "smollm", values["tokenizer.ggml.pre"]
    tokens = values["tokenizer.ggml.tokens"]
    made = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, [tuple(merge.split(" ")) for merge in values["tokenizer.ggml.merges"]]))
    made.pre_tokenizer = sequence(pre_tokenizers.Digits(True), byte_level(regex=True))
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([token for token, kind in zip(tokens, values["tokenizer.ggml.token_type"]) if kind == 3])  # 3: control
    return made
