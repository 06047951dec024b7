// The three models, on vocabularies small enough to encode by hand.
#include <doctest/doctest.h>

#include "shared/tokenizer/bpe.h"
#include "shared/tokenizer/unigram.h"
#include "shared/tokenizer/word_piece.h"

namespace polyphony::tokenizing {
namespace {

const Place kPlace{"t.json", "/model"};

Vocabulary numbered(const std::vector<std::string>& tokens) {
  std::vector<std::pair<std::string, Id>> pairs;
  for (const std::string& token : tokens) pairs.emplace_back(token, static_cast<Id>(pairs.size()));
  return Vocabulary(std::move(pairs));
}

// The tokens that a piece becomes, cut where the model allows it.
std::vector<std::string> tokens(const Bpe& bpe, std::string_view piece, bool bytes = false) {
  std::vector<std::string_view> parts;
  bpe.cut(piece, bytes, parts);
  std::vector<Id> ids;
  for (const std::string_view part : parts) bpe.encode(part, bytes, parts.size() == 1, ids);
  std::vector<std::string> texts;
  for (const Id id : ids) texts.push_back(bpe.vocabulary().token(id));
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_SUITE("tokenizer") {
  TEST_CASE("BPE: the first merge in the list wins, of equal ones the leftmost") {
    const Texts vocabulary = {"a", "b", "c", "ab", "bc", "abc", "aa"};
    const Bpe right(numbered(vocabulary), {{"b", "c"}, {"a", "b"}}, {}, kPlace);
    CHECK(tokens(right, "abc") == Texts{"a", "bc"});
    CHECK(tokens(right, "abab") == Texts{"ab", "ab"});
    const Bpe left(numbered(vocabulary), {{"a", "b"}, {"b", "c"}}, {}, kPlace);
    CHECK(tokens(left, "abc") == Texts{"ab", "c"});
    const Bpe both(numbered(vocabulary), {{"b", "c"}, {"a", "b"}, {"a", "bc"}, {"a", "a"}}, {},
                   kPlace);
    CHECK(tokens(both, "abc") == Texts{"abc"});
    CHECK(tokens(both, "aaa") == Texts{"aa", "a"});
    CHECK(tokens(both, "aabc") == Texts{"a", "abc"});  // "a abc" is in no merge
  }

  TEST_CASE("BPE: pieces of any length, whole or cut") {
    const Bpe bpe(numbered({"a", "aa", "aaaa", "b", "ab"}), {{"a", "a"}, {"aa", "aa"}, {"a", "b"}},
                  {}, kPlace);
    // 4k + r letters: k times "aaaa", then "aa" if r > 1, then "a" if r is odd. 40 symbols is where
    // the method changes, and nothing can be cut: "aa" is inside a token.
    for (std::size_t count = 1; count < 100; ++count) {
      Texts expected(count / 4, "aaaa");
      if (count % 4 > 1) expected.emplace_back("aa");
      if (count % 2 == 1) expected.emplace_back("a");
      CHECK(tokens(bpe, std::string(count, 'a')) == expected);
    }
    // No token contains "ba": cut there.
    std::string text;
    Texts expected;
    for (int i = 0; i < 40; ++i) {
      text += "ab";
      expected.emplace_back("ab");
    }
    std::vector<std::string_view> parts;
    bpe.cut(text, false, parts);
    CHECK(parts.size() == 40);
    CHECK(tokens(bpe, text) == expected);
  }

  TEST_CASE("BPE: unknown characters") {
    const Texts vocabulary = {"<unk>", "a", "<0xC3>", "<0xA9>"};
    BpeOptions options;
    CHECK(tokens(Bpe(numbered(vocabulary), {}, options, kPlace), "axxa") == Texts{"a", "a"});
    options.unknown = "<unk>";
    CHECK(tokens(Bpe(numbered(vocabulary), {}, options, kPlace), "axxa") ==
          Texts{"a", "<unk>", "<unk>", "a"});
    options.fuse_unknown = true;
    CHECK(tokens(Bpe(numbered(vocabulary), {}, options, kPlace), "axxa") ==
          Texts{"a", "<unk>", "a"});
    options.byte_fallback = true;  // é is C3 A9, x has no token
    CHECK(tokens(Bpe(numbered(vocabulary), {}, options, kPlace), "aé") ==
          Texts{"a", "<0xC3>", "<0xA9>"});
    CHECK(tokens(Bpe(numbered(vocabulary), {}, options, kPlace), "ax") == Texts{"a", "<unk>"});
    options.unknown = "<gone>";
    CHECK_THROWS_AS(Bpe(numbered(vocabulary), {}, options, kPlace), InputError);
  }

  TEST_CASE("BPE: whole pieces, prefixes, suffixes, bytes as letters") {
    const Bpe whole(numbered({"a", "b", "c", "abc", "bc"}), {{"b", "c"}}, {.ignore_merges = true},
                    kPlace);
    CHECK(tokens(whole, "abc") == Texts{"abc"});  // no merge leads to it
    CHECK(tokens(whole, "abca") == Texts{"a", "bc", "a"});
    const Bpe prefix(numbered({"a", "##b", "##c", "ab", "##bc"}), {{"##b", "##c"}, {"a", "##b"}},
                     {.prefix = "##"}, kPlace);
    CHECK(tokens(prefix, "abc") == Texts{"a", "##bc"});
    CHECK(tokens(prefix, "ab") == Texts{"ab"});
    const Bpe suffix(numbered({"a", "b", "b</w>", "ab</w>"}), {{"a", "b</w>"}}, {.suffix = "</w>"},
                     kPlace);
    CHECK(tokens(suffix, "ab") == Texts{"ab</w>"});
    CHECK(tokens(suffix, "bab") == Texts{"b", "ab</w>"});
    // A blank is Ġ, é (C3 A9) is Ã©.
    const Bpe letters(numbered({"Ġ", "a", "Ġa", "Ã", "©", "Ã©"}), {{"Ġ", "a"}, {"Ã", "©"}}, {},
                      kPlace);
    CHECK(tokens(letters, " aé", true) == Texts{"Ġa", "Ã©"});
  }

  TEST_CASE("BPE: merges that the vocabulary lacks, or listed twice, are refused") {
    using Merges = std::vector<Bpe::Merge>;
    for (const Merges& merges :
         {Merges{{"a", "x"}}, Merges{{"a", "a"}}, Merges{{"a", "b"}, {"a", "b"}}})
      CHECK_THROWS_AS(Bpe(numbered({"a", "b", "ab"}), merges, {}, kPlace), InputError);
  }

  TEST_CASE("Unigram: the largest sum of scores") {
    const auto encode = [](const Unigram& model, std::string_view text) {
      std::vector<Id> ids;
      model.encode(text, ids);
      return ids;
    };
    const std::vector<Unigram::Piece> pieces = {{"<unk>", 0},   {"a", -1},     {"b", -1},
                                                {"ab", -1.5},   {"c", -3},     {"bc", -1.25},
                                                {"<0xC3>", -9}, {"<0xA9>", -9}};
    const Unigram model(pieces, 0, false, kPlace);
    CHECK(encode(model, "ab") == std::vector<Id>{3});      // -1.5, not -1 - 1
    CHECK(encode(model, "abc") == std::vector<Id>{1, 5});  // -1 - 1.25, not -1.5 - 3
    CHECK(encode(model, "aab") == std::vector<Id>{1, 3});
    CHECK(encode(model, "").empty());
    CHECK(encode(model, "axxéa") == std::vector<Id>{1, 0, 1});  // unknown ones in a row are one
    CHECK(encode(Unigram(pieces, 0, true, kPlace), "aéa") == std::vector<Id>{1, 6, 7, 1});
    CHECK_THROWS_AS(encode(Unigram(pieces, kNoId, false, kPlace), "x"), InputError);
    // Of equal sums, the one that was found first: the token that begins first.
    const Unigram tied({{"<unk>", 0}, {"a", -1}, {"b", -1}, {"ab", -2}}, 0, false, kPlace);
    CHECK(encode(tied, "ab") == std::vector<Id>{3});
  }

  TEST_CASE("WordPiece: the longest start, then the longest that follows") {
    const WordPiece model(numbered({"[UNK]", "un", "##aff", "##able", "##a", "u", "é"}), "[UNK]",
                          "##", 12, kPlace);
    const auto encode = [&](std::string_view word) {
      std::vector<Id> ids;
      model.encode(word, ids);
      return ids;
    };
    CHECK(encode("unaffable") == std::vector<Id>{1, 2, 3});
    CHECK(encode("una") == std::vector<Id>{1, 4});
    CHECK(encode("éa") == std::vector<Id>{6, 4});
    CHECK(encode("unaffx") == std::vector<Id>{0});         // all of it is unknown
    CHECK(encode("unaaaaaaaaaaa") == std::vector<Id>{0});  // 13 characters
    CHECK(encode("unaaaaaaaaaa").size() == 11);            // 12: un, ten times ##a
    CHECK(encode(std::string(1000, 'u')) == std::vector<Id>{0});
    CHECK_THROWS_AS(WordPiece(numbered({"a"}), "[UNK]", "##", 12, kPlace), InputError);
  }
}

}  // namespace polyphony::tokenizing
