// Files of token ids and mixtures as the executor reads them: the content of the right part, the
// held-out samples of all parts, and batches of the planner's order.
#include "exec/data/mixture_dataset.h"

#include <doctest/doctest.h>

#include "exec/data/token_dataset.h"
#include "shared/files/whole.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/data_set.h"
#include "tests/exec/support/temp_folder.h"
#include "tests/shared/support/token_files.h"

namespace polyphony::exec {
namespace {

using testing::refusal;
using testing::spill;
using testing::TempFolder;
using Ids = std::vector<std::int64_t>;

const char* const kTokenizer =
    R"({"added_tokens": [{"id": 4, "content": "</s>", "special": true, "normalized": false,
         "lstrip": false, "rstrip": false, "single_word": false}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "model": {"type": "BPE", "merges": [], "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}}})";

Scenario scenario_of(const decltype(Data::source)& source) {
  Module language{.name = "language", .kind = ModuleKind::language};
  language.vocab = 40;
  Scenario scenario;
  scenario.file = "small.json";
  scenario.model = {{language}, {}};
  scenario.data.source = source;
  scenario.data.global_batch = 6;
  scenario.data.sequence = 4;
  return scenario;
}

// Parts with 3, 4 and 2 training samples, and 0, 2 and 1 held-out samples.
Scenario mixture_in(const TempFolder& folder) {
  spill(folder / "tokenizer.json", kTokenizer);
  spill(folder / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  spill(folder / "page.txt", "abcdabcdabcd");
  test::write_tokens(folder / "corpus",
                     {{11, 12, 13, 14, 15, 16, 17}, {21, 22, 23, 24, 25, 26, 27, 28, 29, 30}});
  test::write_tokens(folder / "held", {{31, 32, 33, 34, 35, 36}});
  const std::string chat =
      R"({"messages": [{"role": "user", "content": "c"}, {"role": "assistant", "content": ")";
  spill(folder / "chat.jsonl", chat + "a\"}]}\n" + chat + "b\"}]}\n[]\n");
  spill(folder / "chat_held.jsonl", chat + "d\"}]}\n");
  ConversationData chats{folder / "chat.jsonl", folder / "tokenizer.json",
                         folder / "chat_held.jsonl"};
  chats.chat = ChatTemplate::plain;
  chats.most_left_out = 0.5;
  return scenario_of(MixtureData{{{TextData{folder / "page.txt", folder / "tokenizer.json"}, 3},
                                  {TokenData{folder / "corpus", folder / "held"}, 1},
                                  {chats, 2}}});
}

}  // namespace

TEST_SUITE("token files and mixtures") {
  TEST_CASE("a sample of a token file has its tokens, and the next ones as labels") {
    const TempFolder folder;
    test::write_tokens<std::int32_t>(folder / "a", {{1, 2, 3, 4, 5}, {6, 7, 8, 39, 39}}, 4);
    test::write_tokens<std::int32_t>(folder / "b", {{10, 11, 12}}, 4);
    const auto dataset = open_dataset(scenario_of(TokenData{folder / "a", folder / "b"}), "");
    REQUIRE(dataset->training().size() == 3);  // 4 + 4 + 1 of nine tokens that have a next one
    const SampleContent second = dataset->content(dataset->training()[1], {});
    CHECK(second.token_ids == Ids{5, 6, 7, 8});
    CHECK(second.labels == Ids{6, 7, 8, 39});
    const SampleContent last = dataset->content(dataset->training()[2], {});
    CHECK((last.token_ids == Ids{39} && last.labels == Ids{39}));
    REQUIRE(dataset->held_out().size() == 1);
    CHECK(dataset->held_out()[0].id == 3);
    const SampleContent held_out = dataset->content(dataset->held_out()[0], {});
    CHECK((held_out.token_ids == Ids{10, 11} && held_out.labels == Ids{11, 12}));
    CHECK(dataset->content(dataset->training()[1], {.text = false}).token_ids.empty());
  }

  TEST_CASE("an id that the vocabulary lacks is found when its sample is read") {
    const TempFolder folder;
    test::write_tokens(folder / "a", {{1, 2, 3, 4, 5, 6, 40, 8, 9}});
    const auto dataset = open_dataset(scenario_of(TokenData{folder / "a"}), "");
    CHECK(dataset->content(dataset->training()[0], {}).token_ids == Ids{1, 2, 3, 4});
    CHECK(refusal([&] { dataset->content(dataset->training()[1], {}); }) ==
          folder /
              "a.bin: token 6 (sequence 0, byte 12, counted from 0) has the id 40, but ids "
              "must be from 0 to 39, the language module's vocabulary (encode the texts with "
              "the model's tokenizer)");
  }

  TEST_CASE("every sample has the content of its part") {
    const TempFolder folder;
    const Scenario scenario = mixture_in(folder);
    const auto dataset = open_dataset(scenario, "");
    const SampleList training = dataset->training();
    REQUIRE(training.size() == 9);
    const auto ids = [&](const Sample& sample) { return dataset->content(sample, {}).token_ids; };
    CHECK(ids(training[1]) == Ids{0, 1, 2, 3});
    CHECK(ids(training[3]) == Ids{11, 12, 13, 14});
    CHECK(ids(training[4]) == Ids{15, 16, 17, 21});
    CHECK(ids(training[7]) == Ids{2, 0});
    CHECK(dataset->content(training[8], {}).labels == Ids{1, 4});
    const std::vector<Sample> held_out = dataset->held_out();
    REQUIRE(held_out.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(held_out[i].id == 9 + i);
    CHECK(ids(held_out[0]) == Ids{31, 32, 33, 34});
    CHECK(ids(held_out[1]) == Ids{35});
    CHECK(ids(held_out[2]) == Ids{2, 3});
    CHECK(dataset->remarks().starts_with("/data/source/mixture/2: "));
  }

  TEST_CASE("planner and executor draw the same batches, by weight") {
    const TempFolder folder;
    Scenario scenario = mixture_in(folder);
    const auto dataset = open_dataset(scenario, "");
    load_samples(scenario, "", [](const std::string& path) { return read_file(path); });
    CHECK(scenario.data.samples == dataset->training());
    CHECK(scenario.data.remarks == dataset->remarks());
    for (std::uint64_t step = 0; step < 20; ++step) {
      const Batch batch = dataset->batch(step);
      CHECK(batch == batch_of_step(scenario, step));
      int parts[3] = {};  // six samples of weights 3 : 1 : 2
      for (const Sample& sample : batch.samples) ++parts[sample.id < 3 ? 0 : sample.id < 7 ? 1 : 2];
      CHECK((parts[0] == 3 && parts[1] == 1 && parts[2] == 2));
    }
  }
}

}  // namespace polyphony::exec
