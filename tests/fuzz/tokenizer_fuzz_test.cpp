// Mutations of tokenizer.json, and texts of random bytes.
#include "shared/random.h"
#include "shared/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz.h"

namespace polyphony {
namespace {

using test::mutated_json;

// Tokenizers in the form of Llama 3, Llama 2, T5 and BERT, with few tokens.
const std::vector<std::string> kTokenizers = {
    R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [
  {"id": 8, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": true, "normalized": false, "special": true}],
  "normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
  {"type": "Split", "pattern": {"Regex": "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|\\s+"},
   "behavior": "Isolated", "invert": false},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
  "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
   {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [8], "tokens": ["<s>"]}}},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
   "fuse_unk": false, "byte_fallback": false, "ignore_merges": true,
   "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4, "Ã": 5, "©": 6, "Ã©": 7}, "merges": ["a b", "Ġ ab", "Ã ©"]}})",
    R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
   {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, {"type": "Strip", "strip_left": true, "strip_right": false}]},
  "pre_tokenizer": null, "added_tokens": [{"id": 7, "content": "ab", "single_word": true, "lstrip": true, "rstrip": false,
   "normalized": true, "special": false}],
  "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
   {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
  "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
   "vocab": {"<unk>": 0, "<0xC3>": 1, "<0xA9>": 2, "▁": 3, "a": 4, "b": 5, "▁a": 6}, "merges": [["▁", "a"]]}})",
    R"({"normalizer": {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
  "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true},
  "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
  "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false,
   "vocab": [["<unk>", 0.0], ["▁", -2.5], ["a", -3.25], ["▁a", -1.125], ["b", -4], ["ab", -3e0]]}})",
    R"({"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
   "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 2]},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
   "vocab": {"[UNK]": 0, "[SEP]": 1, "[CLS]": 2, "a": 3, "##b": 4, "e": 5, ",": 6}}})"};

const std::string kText =
    "ab a  b's 12345\r\n é e\u0301, 中<s> \u200dAb\t" + std::string(60, 'a') + "  ";

}  // namespace

TEST_CASE("fuzz: tokenizer.json") {
  fuzz::check_reader(
      [](std::uint64_t seed) { return mutated_json(seed, kTokenizers[seed % kTokenizers.size()]); },
      [](const std::string& text) {
        const Tokenizer tokenizer = Tokenizer::parse(text, "tokenizer.json");
        std::vector<std::int32_t> ids = tokenizer.encode(kText, true);
        CHECK(ids == tokenizer.encode(kText, true));  // from the cache
        for (const std::int32_t id : ids) CHECK(id >= 0);
        for (std::int32_t id = -1; id < 12; ++id) ids.push_back(id);
        tokenizer.decode(ids);
        tokenizer.decode(ids, true);
        tokenizer.token_id("a");
      });
}

TEST_CASE("fuzz: texts of random bytes for a tokenizer") {
  std::vector<Tokenizer> tokenizers;
  for (const std::string& text : kTokenizers)
    tokenizers.push_back(Tokenizer::parse(text, "tokenizer.json"));
  std::uint64_t seed = 0;
  fuzz::check_reader(
      [&](std::uint64_t s) {
        seed = s;
        std::string text = kText;
        for (std::uint64_t i = 0; i < s % 4; ++i)
          text[random_bits(s, 2 * i) % text.size()] =
              static_cast<char>(random_bits(s, 2 * i + 1) % 256);
        return text;
      },
      [&](const std::string& text) {
        const Tokenizer& tokenizer = tokenizers[seed / 4 % tokenizers.size()];
        tokenizer.decode(tokenizer.encode(text));
      });
}

}  // namespace polyphony
