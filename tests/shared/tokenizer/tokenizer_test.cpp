// Whole files: added tokens, special tokens, what is refused and where, threads.
#include "shared/tokenizer/tokenizer.h"

#include <doctest/doctest.h>

#include <thread>

#include "shared/error.h"
#include "shared/random.h"
#include "tests/shared/support/temp_folder.h"

namespace polyphony {
namespace {

using Ids = std::vector<std::int32_t>;

// A file with letters as tokens: "a" is 0, "b" 1, "c" 2, a blank 3, "ab" 4.
std::string file(const std::string& others = "", const std::string& added = "") {
  return R"({"version": "1.0", "added_tokens": [)" + added + R"(], )" + others +
         R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, " ": 3, "ab": 4},
            "merges": [["a", "b"]]}})";
}
std::string added(int id, const std::string& content, const std::string& others = "") {
  std::string text = R"({"id": )" + std::to_string(id) + R"(, "content": ")" + content + "\"";
  for (const char* const key : {"single_word", "lstrip", "rstrip", "normalized", "special"})
    text += std::string(", \"") + key +
            "\": " + (others.find(key) != std::string::npos ? "true" : "false");
  return text + "}";
}
Ids ids(const std::string& tokenizer, const std::string& text) {
  return Tokenizer::parse(tokenizer, "t.json").encode(text);
}

}  // namespace

TEST_SUITE("tokenizer") {
  TEST_CASE("added tokens are found first, the longest of those that begin leftmost") {
    const std::string both = added(5, "<x>") + "," + added(6, "<x><x>");
    CHECK(ids(file("", both), "a<x><x><x>b") == Ids{0, 6, 5, 1});
    CHECK(ids(file("", added(0, "a")), "ab") == Ids{0, 1});  // a token of the model
  }

  TEST_CASE("added tokens take blanks beside them, or stand alone") {
    CHECK(ids(file("", added(5, "<x>", "lstrip")), "a  <x> b") == Ids{0, 5, 3, 1});
    CHECK(ids(file("", added(5, "<x>", "rstrip")), "a <x>  b") == Ids{0, 3, 5, 1});
    CHECK(ids(file("", added(5, "<x>", "single_word")), "<x> a<x> <x>") == Ids{5, 3, 0, 3, 5});
    CHECK(ids(file("", added(5, "<x>", "lstrip rstrip")), " <x>  <x> ") == Ids{5, 5});
  }

  TEST_CASE("added tokens are found in the text as it is, or in the normalized one") {
    const std::string lower = R"("normalizer": {"type": "Lowercase"}, )";
    CHECK(ids(file(lower, added(5, "AB")), "ab AB") == Ids{4, 3, 5});
    CHECK(ids(file(lower, added(5, "AB", "normalized")), "ab AB") == Ids{5, 3, 5});
    CHECK(Tokenizer::parse(file(lower, added(5, "AB", "normalized")), "t.json").decode({5}) ==
          "ab");
  }

  TEST_CASE("special tokens around the ids, and ids back to text") {
    const Tokenizer tokenizer =
        Tokenizer::parse(file(R"("post_processor": {"type": "Sequence", "processors": [
                  {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
                  {"type": "TemplateProcessing",
                   "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                              {"Sequence": {"id": "A", "type_id": 0}},
                              {"SpecialToken": {"id": "two", "type_id": 0}}],
                   "pair": [], "special_tokens": {
                     "<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]},
                     "two": {"id": "two", "ids": [5, 6], "tokens": ["<s>", "</s>"]}}}]},
                "decoder": {"type": "Fuse"}, )",
                              added(5, "<s>", "special") + "," + added(6, "</s>", "special")),
                         "t.json");
    CHECK(tokenizer.encode("abc") == Ids{4, 2});
    CHECK(tokenizer.encode("abc", true) == Ids{5, 4, 2, 5, 6});
    CHECK(tokenizer.encode("", true) == Ids{5, 5, 6});
    CHECK(tokenizer.encode("a<s>") == Ids{0, 5});
    CHECK(tokenizer.decode({5, 4, 3, 2, 6}) == "<s>ab c</s>");
    CHECK(tokenizer.decode({5, 4, 3, 2, 6, 99, -1}, true) == "ab c");
    CHECK(tokenizer.token_id("ab") == 4);
    CHECK(tokenizer.token_id("</s>") == 6);
    CHECK(!tokenizer.token_id("x"));
    CHECK(tokenizer.vocabulary_size() == 7);
    const Tokenizer bert = Tokenizer::parse(
        file(R"("post_processor": {"type": "BertProcessing", "sep": ["c", 2], "cls": ["a", 0]}, )"),
        "t.json");
    CHECK(bert.encode("b", true) == Ids{0, 1, 2});
  }

  TEST_CASE("old files, and texts that are not UTF-8") {
    const std::string old =
        R"({"model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["#version: 0.2", "a b"]}})";
    CHECK(ids(old, "aab") == Ids{0, 2});
    const Tokenizer tokenizer = Tokenizer::parse(old, "t.json");
    CHECK_THROWS_AS(tokenizer.encode("a\xFF"), InputError);
    CHECK(tokenizer.encode("ab") == Ids{2});  // and goes on
  }

  TEST_CASE("what is wrong or not supported is refused at its place") {
    struct Case {
      std::string text, pointer;
    };
    const auto model = [](const std::string& inside) { return "{\"model\": {" + inside + "}}"; };
    const std::string bpe = R"("type": "BPE", "merges": [], "vocab": {"a": 0})";
    for (
        const Case& one : std::vector<Case>{
            {"[]", ""},
            {"{", ""},
            {"{}", ""},
            {file(R"("truncation": {"max_length": 5}, )"), "/truncation"},
            {file(R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}, )"),
             "/normalizer/type"},
            {file(R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "NFX"}]}, )"),
             "/normalizer/normalizers/0/type"},
            {file(R"("pre_tokenizer": {"type": "UnicodeScripts"}, )"), "/pre_tokenizer/type"},
            {file(R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"},
                      "behavior": "Isolated", "invert": false}, )"),
             "/pre_tokenizer/pattern/Regex"},
            {file(R"("pre_tokenizer": {"type": "Digits", "individual_digits": 1}, )"),
             "/pre_tokenizer/individual_digits"},
            {file(R"("decoder": {"type": "CTC"}, )"), "/decoder/type"},
            {file(
                 R"("post_processor": {"type": "BertProcessing", "sep": ["c"], "cls": ["a", 0]}, )"),
             "/post_processor/sep"},
            {file("", added(7, "<x>")), "/added_tokens/0/id"},
            {file("", added(5, "<x>") + "," + added(5, "<x>")), "/added_tokens/1/id"},
            {file("", R"({"id": 5, "content": "<x>"})"), "/added_tokens/0"},
            {model(bpe + R"(, "dropout": 0.1)"), "/model/dropout"},
            {model(bpe + R"(, "unk_token": "x")"), "/model/unk_token"},
            {model(bpe + R"(, "speed": 9)"), "/model/speed"},
            {model(R"("type": "WordLevel", "vocab": {})"), "/model/type"},
            {model(R"("type": "BPE", "merges": [], "vocab": {"a": 0, "b": 0})"), "/model/vocab/b"},
            {model(R"("type": "BPE", "merges": [], "vocab": {"a~/": -1})"), "/model/vocab/a~0~1"},
            {model(R"("type": "BPE", "merges": [], "vocab": {"a": 2000000000})"), "/model/vocab/a"},
            {model(R"("type": "BPE", "merges": ["a"], "vocab": {"a": 0})"), "/model/merges/0"},
            {model(R"("type": "BPE", "merges": ["a b"], "vocab": {"a": 0})"), "/model/merges/0"},
            {model(R"("type": "BPE", "merges": ["a a", "a a"], "vocab": {"a": 0, "aa": 1})"),
             "/model/merges/1"},
            {model(R"("type": "Unigram", "vocab": [["a", "b"]], "unk_id": 0)"), "/model/vocab/0"},
            {model(R"("type": "Unigram", "vocab": [["a", 1]], "unk_id": 1)"), "/model/unk_id"},
            {model(R"("type": "Unigram", "vocab": [], "unk_id": null)"), "/model/vocab"}}) {
      CAPTURE(one.text);
      try {
        Tokenizer::parse(one.text, "t.json");
        FAIL_CHECK("was read");
      } catch (const InputError& error) {
        CHECK(error.pointer == one.pointer);
        CHECK(error.file == "t.json");
        CHECK(!error.hint.empty());
      }
    }
    std::string deep = R"({"type": "NFC"})";
    for (int i = 0; i < 20; ++i) deep = R"({"type": "Sequence", "normalizers": [)" + deep + "]}";
    CHECK_THROWS_AS(Tokenizer::parse(file("\"normalizer\": " + deep + ", "), "t.json"), InputError);
    CHECK_THROWS_AS(Tokenizer::parse(std::string(100000, '['), "t.json"), InputError);
    const test::TempFolder folder;
    CHECK_THROWS_AS(Tokenizer::load(folder / "spiece.model"), InputError);
    CHECK_THROWS_AS(Tokenizer::load(folder / "missing.json"), InputError);
  }

  TEST_CASE("a text that is cut behind a seam has its first ids, and those from the seam on") {
    const std::string tokens = added(5, "<x>", "lstrip rstrip") + "," + added(6, "<x><x>") + "," +
                               added(7, "a<y>b", "single_word") + "," +
                               added(8, "<z>", "normalized") + "," + added(9, "ca", "single_word");
    const std::string begins =
        R"("pre_tokenizer": {"type": "Metaspace", "replacement": " ", "prepend_scheme": "first",
                             "split": true}, )";
    const std::string prepends = R"("normalizer": {"type": "Prepend", "prepend": "b"}, )";
    const std::vector<std::string> parts{"a", "b", "c", " ", "<x>", "a<y>b", "<z>", "ca", "  "};
    std::size_t found = 0;
    for (const std::string& steps : {std::string(), begins, prepends}) {
      const Tokenizer tokenizer = Tokenizer::parse(file(steps, tokens), "t.json");
      for (std::uint64_t seed = 0; seed < 300; ++seed) {
        std::string text;
        for (std::uint64_t i = 0; i < 8; ++i) text += parts[random_bits(seed, i) % parts.size()];
        std::vector<Tokenizer::Seam> seams;
        const Ids whole = tokenizer.encode(text, seams);
        CHECK(whole == tokenizer.encode(text));
        for (const Tokenizer::Seam& seam : seams)
          for (std::size_t cut = seam.end; cut <= text.size(); ++cut) {
            Ids joined(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(seam.place));
            const Ids rest = tokenizer.encode(text.substr(seam.begin, cut - seam.begin));
            joined.insert(joined.end(), rest.begin(), rest.end());
            CAPTURE(text);
            CAPTURE(cut);
            CHECK(joined == tokenizer.encode(text.substr(0, cut)));
            ++found;
          }
      }
    }
    CHECK(found > 1000);
  }

  TEST_CASE("several threads use one tokenizer") {
    const Tokenizer tokenizer = Tokenizer::parse(file(), "t.json");
    std::vector<int> wrong(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < wrong.size(); ++i)
      threads.emplace_back([&, i] {
        for (std::size_t k = 1; k < 500; ++k) {  // "abab…c": k times 4, then 2
          std::string text;
          for (std::size_t n = 0; n < k % 60; ++n) text += "ab";
          Ids expected(k % 60, 4);
          expected.push_back(2);
          wrong[i] += tokenizer.encode(text + "c") != expected;
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4));
  }
}

}  // namespace polyphony
