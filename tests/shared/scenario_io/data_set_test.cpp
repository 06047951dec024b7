// The samples of a data set: planning and prediction use the samples that a run trains on.
#include "shared/scenario_io/data_set.h"

#include <doctest/doctest.h>

#include <map>

#include "shared/model/data_modules.h"
#include "shared/scenario/typical_batch.h"

namespace polyphony {
namespace {

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

using Files = std::map<std::string, std::string>;

LoadText in_memory(const Files& files) {
  return [files](const std::string& path) {
    const auto found = files.find(path);
    if (found == files.end()) throw InputError(path, "", "cannot be read", "check the path");
    return found->second;
  };
}

// Images of at most 16 patches, four of which make a token of the language sequence of 128.
Scenario small_scenario(const Data& data) {
  Module vision{.name = "vision", .kind = ModuleKind::vision};
  vision.image_size = 8;
  vision.patch = 2;
  Module projector{.name = "projector", .kind = ModuleKind::projector};
  projector.merge = 2;
  const Module language{.name = "language", .kind = ModuleKind::language};
  Scenario scenario;
  scenario.file = "small.json";
  scenario.model = {{vision, projector, language},
                    {{ModuleId(0), ModuleId(1)}, {ModuleId(1), ModuleId(2)}}};
  scenario.data = data;
  return scenario;
}

}  // namespace

TEST_SUITE("data set") {
  // Regression: every sample used to count as one full image and a text as long as the sequence,
  // 4 + 128 tokens under a limit of 128.
  TEST_CASE("planning uses the batches of recorded samples") {
    Scenario scenario =
        small_scenario({.source = RecordedData{"mix.jsonl"}, .global_batch = 3, .sequence = 128});
    load_samples(scenario, "",
                 in_memory({{"mix.jsonl",
                             "{\"items\": [[\"text\", 9, 1]]}\n"
                             "{\"items\": [[\"image\", 4], [\"text\", 4]]}\n"
                             "{\"items\": [[\"text\", 2, 2]]}\n"}}));
    REQUIRE(scenario.data.samples.size() == 3);
    CHECK(scenario.data.samples[1].items ==
          std::vector<Item>{{Modality::image, 4, 0}, {Modality::text, 4, 0}});
    const Batch batch = typical_batch(scenario);
    CHECK(batch == take_batch(scenario.data, 0));
    std::int64_t tokens = 0;  // an epoch: 9 + (1 image token and 4) + 2, in whatever order
    for (const Sample& sample : batch.samples)
      for (const Item& item : sample.items) tokens += item.tokens;
    CHECK(tokens == 9 + 4 + 4 + 2);
    CHECK(batch_of_step(scenario, 1) == take_batch(scenario.data, 1));
  }

  TEST_CASE("without shuffle, samples keep the order of the data set") {
    Scenario scenario = small_scenario({.source = RecordedData{"mix.jsonl"}, .global_batch = 2});
    std::string lines;
    for (int i = 1; i <= 5; ++i) lines += "{\"items\": [[\"text\", " + std::to_string(i) + "]]}\n";
    load_samples(scenario, "", in_memory({{"mix.jsonl", lines}}));
    scenario.data.shuffle = false;
    std::vector<int> lengths;  // three batches of two go round five samples once and begin again
    for (std::uint64_t step = 0; step < 3; ++step)
      for (const Sample& sample : batch_of_step(scenario, step).samples)
        lengths.push_back(sample.items.front().tokens);
    CHECK(lengths == std::vector<int>{1, 2, 3, 4, 5, 1});
  }

  TEST_CASE("a data set whose files have not been read is an error") {
    const Scenario scenario = small_scenario({.source = RecordedData{"mix.jsonl"}});
    CHECK(refusal_of([&] { typical_batch(scenario); }) ==
          "small.json: /data/source: the samples of the data set have not been read (call "
          "load_samples() after reading the scenario)");
    Scenario missing = scenario;
    CHECK(refusal_of([&] { load_samples(missing, "", in_memory({})); }) ==
          "mix.jsonl: cannot be read (check /data/source/recorded in small.json)");
    missing.data.source = EasyVqaData{};
    CHECK(refusal_of([&] { load_samples(missing, "cache", in_memory({})); }) ==
          "small.json: /data/source: the data set easy-vqa is not in cache (run scripts/setup, or "
          "name the folder of the unpacked package: {\"easy-vqa\": \"FOLDER\"})");
  }

  TEST_CASE("a sample that the model cannot process is rejected") {
    Scenario scenario = small_scenario({.source = RecordedData{"mix.jsonl"}, .sequence = 5});
    const auto refused = [&](const std::string& lines) {
      return refusal_of([&] { load_samples(scenario, "", in_memory({{"mix.jsonl", lines}})); });
    };
    CHECK(
        refused("{\"items\": [[\"text\", 2]]}\n{\"items\": [[\"image\", 15]]}") ==
        "mix.jsonl: sample 1 (counted from 0) has an image of 15 patches; images must be squares, "
        "or [rows, columns], whose sides are a multiple of 2 and at most 4 (change the recorded "
        "number, or model.vision.image_size)");
    // Learned positions are a table of 4 × 4; rotary ones have no limit.
    CHECK(refused("{\"items\": [[\"image\", [2, 8]]]}").find("at most 4") != std::string::npos);
    scenario.model.modules[0].rotary = true;
    CHECK(refused("{\"items\": [[\"image\", [2, 8]]]}").empty());
    CHECK(refused("{\"items\": [[\"image\", [1, 4]]]}").find("a multiple of 2 (change") !=
          std::string::npos);
    CHECK(refused("{\"items\": [[\"image\", 15]]}").find("must be squares") != std::string::npos);
    scenario.model.modules[0].rotary = false;
    CHECK(refused("{\"items\": [[\"image\", 16], [\"text\", 2]]}") ==
          "mix.jsonl: sample 0 (counted from 0) has 6 tokens, more than the 5 of /data/sequence in "
          "the scenario (increase /data/sequence, or remove the sample)");
    CHECK(refused("{\"items\": [[\"audio\", 2]]}").find("no audio module") != std::string::npos);
  }

  // An image of 16 patches; "is it red" is three words and the query token.
  TEST_CASE("each question of easy-vqa is a sample with its own length") {
    const Files files{{"here/data/answers.txt", "yes\n"},
                      {"here/data/train/questions.json",
                       "[[\"Is it red?\", \"yes\", 0], [\"what colour is it?\", \"yes\", 1]]"}};
    Scenario scenario = small_scenario({.source = EasyVqaData{"here"}, .global_batch = 2});
    load_samples(scenario, "elsewhere", in_memory(files));
    CHECK(scenario.data.samples ==
          std::vector<Sample>{{0, {{Modality::image, 16, 0}, {Modality::text, 4, 1}}},
                              {1, {{Modality::image, 16, 0}, {Modality::text, 5, 1}}}});
  }

  TEST_CASE("questions become lower-case words without punctuation") {
    using Words = std::vector<std::string>;
    CHECK(question_words("What is the BLUE shape?") == Words{"what", "is", "the", "blue", "shape"});
    CHECK(question_words("  don't -- ask, twice! ") == Words{"dont", "ask", "twice"});
    CHECK(question_words("?!").empty());
  }

  TEST_CASE("the download folder follows from environment variables") {
    const auto folder = [](const Files& variables) {
      return download_folder([&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return {};
        return found->second;
      });
    };
    CHECK(folder({{"POLYPHONY_CACHE", "a"}, {"XDG_CACHE_HOME", "b"}, {"HOME", "c"}}) == "a");
    CHECK(folder({{"XDG_CACHE_HOME", "b"}, {"HOME", "c"}}) == "b/polyphony");
    CHECK(folder({{"HOME", "c"}}) == "c/.cache/polyphony");
    CHECK(folder({}) == ".");
  }
}

}  // namespace polyphony
