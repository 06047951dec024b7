// Normalizers, pre-tokenizers, decoders and the dialect of regular expressions.
#include <doctest/doctest.h>

#include "shared/tokenizer/decoder.h"
#include "shared/tokenizer/normalizer.h"
#include "shared/tokenizer/pre_tokenizer.h"
#include "shared/tokenizer/regex_dialect.h"

namespace polyphony::tokenizing {
namespace {

using Texts = std::vector<std::string>;
const Place kStepsPlace{"t.json", "/pre_tokenizer"};

std::string normal(const std::string& text, const std::vector<NormalizerStep>& steps) {
  NormalText changed{text, 0};
  normalize(steps, changed);
  return changed.text;
}

Texts pieces(const std::string& text, const std::vector<PreTokenizerStep>& steps) {
  std::vector<Piece> split = {{text, utf8_size(text[0]), kNoId}};
  std::deque<std::string> made;
  pre_tokenize(steps, split, made);
  Texts texts;
  for (const Piece& piece : split) texts.emplace_back(piece.text);
  return texts;
}

Split on(const std::string& regex, Behavior behavior, bool invert = false) {
  return {Pattern::regex(regex, kStepsPlace), behavior, invert};
}

Texts words(const std::string& regex, const std::string& text) {
  return pieces(text, {on(regex, Behavior::isolated)});
}

}  // namespace

TEST_SUITE("tokenizer") {
  TEST_CASE("UTF-8: what is not valid, and its repair") {
    CHECK(!first_invalid_byte("aé€😀"));
    // A lone continuation, an overlong slash, a surrogate, beyond U+10FFFF, a cut character.
    for (const char* const bad :
         {"a\x80", "a\xC0\xAF", "a\xED\xA0\x80", "a\xF4\x90\x80\x80", "a\xE2\x82"})
      CHECK(first_invalid_byte(bad) == 1);
    CHECK(repaired_utf8("a\xE2\x82z\xFF") == "a\xEF\xBF\xBDz\xEF\xBF\xBD");
    CHECK(repaired_utf8("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  }

  TEST_CASE("normalizers") {
    CHECK(normal("e\u0301", {NormalForm::nfc}) == "é");
    CHECK(normal("é", {NormalForm::nfd}) == "e\u0301");
    CHECK(normal("ﬁ①", {NormalForm::nfkc}) == "fi1");
    CHECK(normal("ﬁé", {NormalForm::nfkd}) == "fie\u0301");
    CHECK(normal("\uAC00\u11A7\u11A8", {NormalForm::nfc}) == "\uAC00\u11A7\u11A8");
    CHECK(normal("\u1100\u1161\u11A8", {NormalForm::nfc}) == "\uAC01");
    CHECK(normal("ÀΣİ", {Lowercase{}}) == "àσi\u0307");
    CHECK(normal("e\u0301x", {StripAccents{}}) == "ex");
    CHECK(normal("a b", {Replace{Pattern::plain(" "), "▁"}, Prepend{"▁"}}) == "▁a▁b");
    CHECK(normal("", {Prepend{"▁"}}).empty());
    CHECK(normal("a  b \u00A0c", {Replace{Pattern::regex("\\s+", kStepsPlace), "_"}}) == "a_b_c");
    CHECK(normal(" \u3000a \n", {StripBlanks{true, false}}) == "a \n");
    CHECK(normal(" a \u3000", {StripBlanks{false, true}}) == " a");
    CHECK(normal(" \n ", {StripBlanks{true, true}}).empty());
    CHECK(normal("a\x01\tÉ中", {BertNormalizer{true, true, true, true}}) == "a e 中 ");
    CHECK(normal("a\x7F\u200Bb", {Nmt{}}) == "a b");
    CHECK(normal(" é", {ByteLetters{}}) == "ĠÃ©");
  }

  TEST_CASE("steps that make a text grow without end are refused") {
    const Replace doubling{Pattern::plain("a"), "aa"};
    CHECK(normal("a", std::vector<NormalizerStep>(10, doubling)).size() == 1024);
    CHECK_THROWS_AS(normal("a", std::vector<NormalizerStep>(40, doubling)), InputError);
    CHECK_THROWS_AS(normal("aaa", {Replace{Pattern::plain("a"), std::string(4096, 'b')}}),
                    InputError);
  }

  TEST_CASE("what stands for the first character of a text") {
    NormalText text{"  ab", 1};
    normalize({StripBlanks{true, false}}, text);
    CHECK(text.head == 0);  // "a" is the third character
    text = {"ﬁx", 3};
    normalize({NormalForm::nfkc, Prepend{"▁"}}, text);
    CHECK(text.text == "▁fix");
    CHECK(text.head == 5);  // ▁, f and i
    text = {"abab", 1};
    normalize({Replace{Pattern::plain("ab"), "c"}}, text);
    CHECK(text.head == 0);  // "c" stands where "b" stood
  }

  TEST_CASE("split: every behavior, and inverted") {
    const std::string text = "a--b-";
    CHECK(pieces(text, {on("-", Behavior::removed)}) == Texts{"a", "b"});
    CHECK(pieces(text, {on("-", Behavior::isolated)}) == Texts{"a", "-", "-", "b", "-"});
    CHECK(pieces(text, {on("-", Behavior::merged_with_previous)}) == Texts{"a-", "-", "b-"});
    CHECK(pieces(text, {on("-", Behavior::merged_with_next)}) == Texts{"a", "-", "-b", "-"});
    CHECK(pieces(text, {on("-", Behavior::contiguous)}) == Texts{"a", "--", "b", "-"});
    CHECK(pieces(text, {on("-", Behavior::removed, true)}) == Texts{"-", "-", "-"});
    CHECK(pieces("a b", {Split{Pattern::plain(" "), Behavior::merged_with_previous, false}}) ==
          Texts{"a ", "b"});
    CHECK(pieces("a12٣b", {SplitByClass{is_numeric, Behavior::contiguous}}) ==
          Texts{"a", "12٣", "b"});
    CHECK(pieces("a,\u3000b", {SplitByClass{is_white_space, Behavior::removed},
                               SplitByClass{is_punctuation, Behavior::isolated}}) ==
          Texts{"a", ",", "b"});
  }

  TEST_CASE("split: byte level and metaspace") {
    const Pattern gpt2 = Pattern::regex(
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
        kStepsPlace);
    CHECK(pieces("It's 123 things,\n\n  ok ", {ByteLevel{false, gpt2, false}}) ==
          Texts{"It", "'s", " 123", " things", ",", "\n\n ", " ok", " "});
    CHECK(pieces("a b", {ByteLevel{true, gpt2}}) == Texts{"Ġa", "Ġb"});
    CHECK(pieces("é", {ByteLevel{false, std::nullopt}}) == Texts{"Ã©"});
    using Scheme = Metaspace::Scheme;
    CHECK(pieces("a  b", {Metaspace{"▁", Scheme::always, true}}) == Texts{"▁a", "▁", "▁b"});
    CHECK(pieces(" a b", {Metaspace{"▁", Scheme::always, true}}) == Texts{"▁a", "▁b"});
    CHECK(pieces("a b", {Metaspace{"▁", Scheme::never, true}}) == Texts{"a", "▁b"});
    CHECK(pieces("a b", {Metaspace{"▁", Scheme::first, false}}) == Texts{"▁a▁b"});
    CHECK(pieces("a,b", {on(",", Behavior::isolated), Metaspace{"▁", Scheme::first, false}}) ==
          Texts{"▁a", ",", "b"});
    CHECK(pieces("a,b", {on(",", Behavior::isolated), Metaspace{"▁", Scheme::always, false}}) ==
          Texts{"▁a", "▁,", "▁b"});
  }

  TEST_CASE("regular expressions of Oniguruma's dialect") {
    CHECK(words("\\p{N}{1,3}", "12345a") == Texts{"123", "45", "a"});
    CHECK(words("\\p{N}{1,3}+", "12345a") == Texts{"12345", "a"});      // repeated, not possessive
    CHECK(words("(?:ab){2}?c?", "ababab") == Texts{"abab", "a", "b"});  // optional
    CHECK(words("a{,2}", "aaab") == Texts{"aa", "a", "b"});
    CHECK(words("\\s+", "a\u2003\u0085b\u180E") == Texts{"a", "\u2003\u0085", "b\u180E"});
    CHECK(words("\\h+", "xbeefx") == Texts{"x", "beef", "x"});
    CHECK(words("\\w+", "a\u0301_1²-") == Texts{"a\u0301_1²", "-"});
    CHECK(words("[\\w]+", "a_1²") == Texts{"a_1", "²"});
    CHECK(words("\\bb", "ab b") == Texts{"ab ", "b"});
    CHECK(words("(?m:a.)", "a\nb") == Texts{"a\n", "b"});
    CHECK(words("a.", "a\na\rb") == Texts{"a\n", "a\r", "b"});
    CHECK(words("^a", "ab\nab") == Texts{"a", "b\n", "a", "b"});
    CHECK(words("(?i:'s|'ll)", "a'S'Ll") == Texts{"a", "'S", "'Ll"});
    CHECK(words("(?i)k", "akK\u212A") == Texts{"a", "k", "K", "\u212A"});
    CHECK(words("\\p{Han}+", "a中、b") == Texts{"a", "中", "、b"});  // not by script extensions
    CHECK(words("[^\\s\\p{^L}]+", "ab 1") == Texts{"ab", " 1"});
    CHECK(words("\\x{4E2D}|\\u4E2E|\\x41", "a中丮A") == Texts{"a", "中", "丮", "A"});
    CHECK(words("b*", "abb") == Texts{"a", "bb"});  // empty matches divide nothing from nothing
    for (const char* const refused :
         {"(a)\\1", "\\k<n>",      "[a&&b]",   "[a[bc]]", "[[:alpha:]]", "a\\Kb", "\\X",
          "\\R",    "(?~a)",       "a(?i)b|c", "(?x)a",   "(?i:st)",     "(?i)ß", "\\p{Nonsense}",
          "\\p{L",  "[a",          "(a",       "a)",      "a**",         "\\",    "[\\W]",
          "\\p",    "\\x{110000}", ""})
      CHECK_THROWS_AS_MESSAGE(Pattern::regex(refused, kStepsPlace), InputError, refused);
  }

  TEST_CASE("a regular expression that backtracks too long is refused") {
    const Pattern slow = Pattern::regex("(?:a+)+[bc]", kStepsPlace);
    std::vector<Span> found;
    CHECK_THROWS_AS(slow.find_all(std::string(60, 'a'), found), InputError);
  }

  TEST_CASE("decoders") {
    CHECK(decode({}, {"a", "b"}) == "a b");
    CHECK(decode({DecodeLetters{}}, {"Ġa", "Ã", "©", "Ã", "中"}) == " aé\uFFFD中");
    CHECK(decode({DecodeMetaspace{"▁", true}}, {"▁a", "▁b"}) == "a b");
    CHECK(decode({DecodeMetaspace{"▁", false}}, {"▁a", "▁b"}) == " a b");
    CHECK(decode({DecodeByteFallback{}, DecodeFuse{}}, {"a", "<0xC3>", "<0xA9>", "b", "<0xC3>"}) ==
          "aéb\uFFFD");
    CHECK(decode({DecodeReplace{{Pattern::plain("▁"), " "}}, DecodeFuse{}, DecodeStrip{' ', 1, 0}},
                 {"▁", "▁a"}) == " a");
    CHECK(decode({DecodeStrip{'x', 2, 1}}, {"xxxaxx", "x"}) == "xax");
    CHECK(decode({DecodeWordPiece{"##", true}}, {"un", "##able", ",", "it", "'s"}) ==
          "unable, it's");
    CHECK(decode({DecodeSuffix{"</w>"}}, {"a", "b</w>", "c</w>"}) == "ab c");
    CHECK(decode({DecodeSuffix{"</w>"}}, {}).empty());
  }
}

}  // namespace polyphony::tokenizing
