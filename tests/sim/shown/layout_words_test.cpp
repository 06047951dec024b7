// Layouts and tables as stdout shows them.
#include "sim/text/layout_words.h"

#include <doctest/doctest.h>

#include "sim/console/console.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::sim {
namespace {

Model vision_and_language() { return test::scenario_at("scenarios/vlm_12b_70b_h100.json").model; }

Layout layout_of(const Model& model, Placement placement) {
  Layout layout;
  layout.placement = placement;
  layout.modules.resize(model.modules.size());
  layout.microbatches = 32;
  return layout;
}

}  // namespace

TEST_CASE("a homogeneous layout is written as Megatron-LM's users write it") {
  const Model model = vision_and_language();
  Layout layout = layout_of(model, Placement::homogeneous);
  for (ModuleLayout& grid : layout.modules) {
    grid.tp = 2;
    grid.cp = 2;
    grid.pp = 4;
    grid.vpp = 12;
    grid.sp = true;
    grid.ranks = 2 * 2 * 4 * 32;
    grid.tokens = TokenAssignment::zigzag;
    grid.shard = Shard::gradients;
    grid.recompute = Recompute::full;
    grid.recompute_blocks = {0, 26};
  }
  layout.schedule = ScheduleKind::interleaved;
  CHECK(
      layout_words(model, layout, "GPUs") ==
      "homogeneous: TP2 SP CP2 PP4 VPP12 DP32, ZeRO-2, recompute layers 0-25, interleaved 1F1B, 32 "
      "microbatches");
}

TEST_CASE("modules with GPUs of their own say how many") {
  const Model model = vision_and_language();
  Layout layout = layout_of(model, Placement::non_colocated);
  ModuleLayout& vision = layout.modules.front();
  vision.ranks = 64;
  vision.tp = 4;
  vision.shard = Shard::full;
  vision.shard_ranks = 8;
  ModuleLayout& language = layout.modules.back();
  language.ranks = 448;
  language.tp = 8;
  language.pp = 7;
  layout.microbatches = 1;
  CHECK(layout_words(model, layout, "GPUs") ==
        "non-colocated: vision on 64 GPUs TP4 DP16, ZeRO-3 (FSDP) over 8 of 16 DP ranks; language "
        "on 448 GPUs TP8 PP7 DP8; 1F1B, 1 microbatch");
  CHECK(
      placement_legend(model, {Placement::colocated, Placement::homogeneous}).find("colocated: ") !=
      std::string::npos);
}

TEST_CASE("a shard group is a part of the DP·CP ranks, and stages are counted in blocks") {
  const Model model = vision_and_language();
  Layout layout = layout_of(model, Placement::homogeneous);
  for (ModuleLayout& grid : layout.modules) {
    grid.cp = 2;
    grid.pp = 4;
    grid.ranks = 2 * 4 * 16;
    grid.shard = Shard::optimizer;
    grid.shard_ranks = 16;  // of DP16 · CP2
  }
  const auto words = [&](std::vector<int> blocks) {
    layout.modules.back().blocks = std::move(blocks);
    return layout_words(model, layout, "GPUs");
  };
  const auto with = [](const std::string& split) {
    return "homogeneous: TP1 CP2 PP4 DP16, ZeRO-1 over 16 of 32 DP·CP ranks" + split +
           ", 1F1B, 32 microbatches";
  };
  CHECK(words({}) == with(""));
  CHECK(words({3, 3, 3, 3}) == with(", 3 blocks a stage"));
  CHECK(words({78, 40}) == with(", stages of 78 and 40 blocks"));
  std::vector<int> blocks{6};
  blocks.insert(blocks.end(), 4, 8);
  blocks.insert(blocks.end(), 26, 3);
  blocks.push_back(2);
  CHECK(words(blocks) == with(", stages of 6, 4 times 8, 26 times 3 and 2 blocks"));
  CHECK(words({1, 2, 1, 2, 1, 2, 1}) == with(", stages of 1 to 2 blocks"));  // seven runs
  for (ModuleLayout& of : layout.modules) of.shard_ranks = 32;               // all of them
  CHECK(words({}).find("ZeRO-1, ") != std::string::npos);
}

TEST_CASE("a table that is too wide goes on in a second one, long texts go to lines of their own") {
  Table table({"stage", "first\nhalf", "second"});
  table.add({"0", "1.5 s", "20 GiB"});
  CHECK(table.text() ==
        "       first\n"
        "stage   half  second\n"
        "--------------------\n"
        "    0  1.5 s  20 GiB\n");
  CHECK(table.text(15) ==
        "       first\n"
        "stage   half\n"
        "------------\n"
        "    0  1.5 s\n"
        "\n"
        "stage  second\n"
        "-------------\n"
        "    0  20 GiB\n");
  CHECK(table.text_with("layout", {"TP1 DP8"}, 80) ==
        "       first\n"
        "stage   half  second  layout\n"
        "-----------------------------\n"
        "    0  1.5 s  20 GiB  TP1 DP8\n");
  CHECK(table.text_with("layout", {"TP1 DP8, 32 microbatches"}, 24) ==
        "       first\n"
        "stage   half  second\n"
        "--------------------\n"
        "    0  1.5 s  20 GiB\n"
        "      TP1 DP8, 32\n"
        "        microbatches\n");
  Table gaps({"stage", "first", "second"});
  gaps.add({"0", "1.5 s", "20 GiB"});
  gaps.add({"", "2.5 s", ""});
  CHECK(gaps.text(15) ==
        "stage  first\n"
        "------------\n"
        "    0  1.5 s\n"
        "       2.5 s\n"
        "\n"
        "stage  second\n"
        "-------------\n"
        "    0  20 GiB\n");
  CHECK(wrapped("one two three", 7, 2) == "one two\n  three");
  CHECK(wrapped("keep 5 % free", 6) == "keep\n5 %\nfree");  // a number and its unit stay together
}

}  // namespace polyphony::sim
