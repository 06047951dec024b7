// The data sources "tokens" and "mixture" of scenario files.
#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/files/whole.h"
#include "shared/form/schema_json.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/data_set.h"
#include "shared/scenario_io/scenario_json.h"
#include "tests/shared/support/token_files.h"

namespace polyphony {
namespace {

using test::spill;
using test::TempFolder;
using test::write_tokens;

// A tokenizer of the letters a to d and an end of text.
const char* const kTokenizer =
    R"({"added_tokens": [{"id": 4, "content": "</s>", "special": true, "normalized": false,
         "lstrip": false, "rstrip": false, "single_word": false}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "model": {"type": "BPE", "merges": [], "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}}})";

std::string load(const std::string& path) { return read_file(path); }

std::string scenario_with(const std::string& data) {
  return R"({"polyphony": 1,
             "model": {"language": {"layers": 1, "hidden": 8, "heads": 2, "ffn": 8, "vocab": 8}},
             "cluster": {"node": "this-machine", "ranks": 1},
             "data": {"global_batch": 6, )" +
         data + "}}";
}

// Every kind of part: three texts of 4 tokens, five pieces of token files, two conversations.
const char* const kMixture =
    R"("sequence": 4,
       "source": {"mixture": [
         {"text": "page.txt", "tokenizer": "tokenizer.json", "weight": 3},
         {"tokens": "corpus", "held_out": "corpus.idx"},
         {"dataset": "chat.jsonl", "tokenizer": "tokenizer.json", "template": "plain",
          "most_left_out": 0.5, "weight": 0.25}]})";

void write_data(const TempFolder& folder) {
  spill(folder / "tokenizer.json", kTokenizer);
  spill(folder / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  spill(folder / "page.txt", "abcdabcdabcd");  // 11 tokens have a next one: 4 + 4 + 3
  write_tokens(folder / "corpus", {{1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7, 0, 1, 2}});
  const std::string line = R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"}]})";
  std::string one = line;
  one.erase(std::remove(one.begin(), one.end(), '\n'), one.end());
  spill(folder / "chat.jsonl", one + "\n" + one + "\nno conversation\n");
}

Scenario read(const std::string& text, const std::string& file) {
  return read_scenario(text, file, load);
}

std::string mixture_refusal(const std::string& data) {
  const TempFolder folder;
  write_data(folder);
  try {
    Scenario scenario = read(scenario_with(data), folder / "my.json");
    load_samples(scenario, "", load);
  } catch (const InputError& error) {
    std::string line = error.what();
    for (std::size_t at; (at = line.find(folder.path() + "/")) != std::string::npos;)
      line.erase(at, folder.path().size() + 1);
    return line;
  }
  return "";
}

}  // namespace

TEST_CASE("a mixture's samples are those of its parts, and its text is read back as written") {
  const TempFolder folder;
  write_data(folder);
  Scenario scenario = read(scenario_with(kMixture), folder / "my.json");
  const auto& parts = std::get<MixtureData>(scenario.data.source).parts;
  REQUIRE(parts.size() == 3);
  CHECK(std::get<TokenData>(parts[1].source) ==
        TokenData{folder / "corpus", folder / "corpus.idx"});
  CHECK((parts[0].weight == 3 && parts[1].weight == 1 && parts[2].weight == 0.25));

  load_samples(scenario, "", load);
  CHECK(scenario.data.samples.parts() ==
        std::vector<SampleList::Part>{{0, 3, 3'000'000}, {3, 4, 1'000'000}, {7, 2, 250'000}});
  CHECK(scenario.data.samples[2].items == std::vector<Item>{{Modality::text, 3, 3}});
  CHECK(scenario.data.samples[6].items == std::vector<Item>{{Modality::text, 4, 4}});
  CHECK(scenario.data.remarks == "/data/source/mixture/2: " + (folder / "chat.jsonl") +
                                     ": 1 of 3 samples are skipped: 1: not a JSON object (first: "
                                     "sample 2)");
  CHECK(batch_of_step(scenario, 5) == take_batch(scenario.data, 5));

  const auto read_back = [&](const std::string& text, const std::string& file) {
    return std::get<MixtureData>(read(text, file).data.source);
  };
  CHECK(read_back(resolved_text(scenario), "x.json").parts == parts);
  // Every path may be read from elsewhere.
  const Scenario beside = read(scenario_with(kMixture), "my.json");
  const std::string moved = movable_text(beside, "/somewhere");
  CHECK(read_back(moved, "/elsewhere/my.json") ==
        read_back(scenario_with(kMixture), "/somewhere/my.json"));
}

TEST_CASE("a file of token ids alone") {
  const TempFolder folder;
  write_data(folder);
  Scenario scenario = read(scenario_with(R"("sequence": 6, "source": {"tokens": "corpus.bin"})"),
                           folder / "my.json");
  load_samples(scenario, "", load);
  CHECK(scenario.data.samples ==  // 16 tokens have a next one: 6 + 6 + 4
        SampleList({{0, {{Modality::text, 6, 6}}},
                    {1, {{Modality::text, 6, 6}}},
                    {2, {{Modality::text, 4, 4}}}}));
  CHECK(read(resolved_text(scenario), "x.json").data.source == scenario.data.source);
}

TEST_CASE("wrong sources and mixtures are refused by place") {
  CHECK(mixture_refusal(kMixture).empty());
  CHECK(mixture_refusal(R"("source": {"tokens": "corpus"})") ==
        "my.json: /data: key \"sequence\" is missing (a text is cut into samples of \"sequence\" "
        "tokens)");
  CHECK(mixture_refusal(R"("source": {"mixture": [{"tokens": "corpus"}]})")
            .find("\"sequence\" is missing") != std::string::npos);
  CHECK(mixture_refusal(R"("sequence": 4, "source": {"tokens": "corpus", "tokenizer": "a"})") ==
        "my.json: /data/source/tokenizer: tokenizer must not be given with \"tokens\" (remove the "
        "key)");
  CHECK(mixture_refusal(R"("sequence": 4, "source": {"tokens": "nothing"})") ==
        "nothing.idx: cannot be read: No such file or directory (check /data/source/tokens in "
        "my.json: NAME of NAME.bin and NAME.idx)");
  const auto second = [](const std::string& part) {
    return mixture_refusal(R"("sequence": 4, "source": {"mixture": [{"tokens": "corpus"}, )" +
                           part + "]}");
  };
  CHECK(second(R"({"weight": 1})") ==
        "my.json: /data/source/mixture/1: a part of a mixture must name a data set: dataset, text "
        "or tokens (write {\"tokens\": \"data/corpus_text_document\", \"weight\": 2})");
  CHECK(second(R"({"text": "page.txt"})").find("/mixture/1: key \"tokenizer\" is missing") !=
        std::string::npos);
  CHECK(second(R"({"tokens": "corpus", "text": "page.txt"})")
            .find("/data/source/mixture/1: a part of a mixture must name one data set, got "
                  "\"text\" and \"tokens\"") != std::string::npos);
  CHECK(second(R"({"tokens": "corpus", "template": "plain"})")
            .find("/data/source/mixture/1/template: template must not be given with \"tokens\"") !=
        std::string::npos);
  CHECK(second(R"({"tokens": "corpus", "weight": 0})").find("/data/source/mixture/1/weight") !=
        std::string::npos);
  for (const char* no :
       {R"({"mixture": []})", R"({"recorded": "mix.jsonl"})", R"({"easy-vqa": ""})"})
    CHECK(second(no).find("/data/source/mixture/1") != std::string::npos);
  CHECK(mixture_refusal(R"("source": {"mixture": []})").find("/data/source/mixture") !=
        std::string::npos);
  CHECK(second(R"({"tokens": "nothing"})").find("check /data/source/mixture/1/tokens in my.json") !=
        std::string::npos);
  CHECK(second(R"({"dataset": "chat.jsonl", "tokenizer": "tokenizer.json", "template": "plain"})")
            .find("/data/source/mixture/1/most_left_out in my.json") != std::string::npos);
  CHECK(mixture_refusal(R"("source": {"mixture": [{"tokens": "corpus"}], "text": "page.txt"})")
            .find("source must name one data set, got \"text\" and \"mixture\"") !=
        std::string::npos);
}

}  // namespace polyphony
