// Keys gathered some heads at a time (ModuleLayout::cp_heads): the key in files, refusals, and the
// effect on a step's memory and time.
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/cost/attention_tail.h"
#include "shared/cost/cost_model.h"
#include "shared/graph/memory.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

// Eight key/value heads of 16, four ranks on a fabric, 4,096 tokens.
Scenario scenario_with(const std::string& grid, const std::string& more = "") {
  return read_scenario(
      R"({"polyphony": 1, "about": "Sizes chosen for speed. Source: none.",
          "model": {"language": {"layers": 4, "hidden": 256, "heads": 16, "kv_heads": 8, "ffn": 512,
                    "vocab": 512)" +
          more + R"(}},
          "cluster": {"node": {"device": "H100", "ranks": 4, "link": "25GBps"}},
          "data": {"source": "synthetic", "text": {"tokens": 4096}, "global_batch": 1},
          "layout": {"placement": "homogeneous", "all": {)" +
          grid + R"(}},
          "training": {"precision": "bf16"}})",
      "heads.json", test::file_text);
}

std::string refusal_of(const std::string& grid) {
  const Scenario scenario = scenario_with(grid);
  const auto why = check_layout(scenario, *scenario.layout);
  return why ? why->reason : "";
}

struct HeadsStep {
  Seconds time;
  Bytes peak;
  auto operator<=>(const HeadsStep&) const = default;
};
HeadsStep heads_step(const std::string& grid) {
  const Scenario scenario = scenario_with(grid);
  REQUIRE_FALSE(check_layout(scenario, *scenario.layout));
  const Program program = lower(scenario, *scenario.layout, make_plan(scenario, *scenario.layout),
                                typical_batch(scenario));
  CHECK(verify(program).empty());
  const Compiled compiled = std::get<Compiled>(compile(program));
  const Estimate found =
      estimate(program, compiled,
               price(program, compiled, scenario.cluster, *shipped_profile(scenario.cluster)));
  return {found.step(), predict_memory(program, found.timeline).front().peak};
}

// Of the first rank's forward.
double tail_of(const std::string& grid, int key_heads_a_launch) {
  const Scenario scenario = scenario_with(grid);
  HardwareProfile profile = *shipped_profile(scenario.cluster);
  profile.device.processors = 64;
  profile.stack.key_heads_a_launch = key_heads_a_launch;
  const Program program = lower(scenario, *scenario.layout, make_plan(scenario, *scenario.layout),
                                typical_batch(scenario));
  for (const Op& op : program.ops)
    if (const auto* compute = std::get_if<Compute>(&op.what))
      return attention_tail(program, *compute, profile);
  return 0;
}

}  // namespace

TEST_SUITE("keys by heads") {
  TEST_CASE("need context-parallel ranks that gather keys, and divide a rank's heads") {
    CHECK(refusal_of(R"("cp": 4, "cp_heads": 2)").empty());
    CHECK(refusal_of(R"("cp": 2, "tp": 2, "cp_heads": 4)").empty());
    CHECK(refusal_of(R"("cp": 4, "cp_heads": 3)") ==
          "language: cp_heads 3 does not divide the 8 key/value heads of a tensor-parallel rank; "
          "nearest legal: 2 or 4");
    CHECK(refusal_of(R"("cp": 2, "tp": 2, "cp_heads": 8)") ==
          "language: cp_heads 8 does not divide the 4 key/value heads of a tensor-parallel rank; "
          "nearest legal: 4");
    const char* const other =
        "language: cp_heads 2 applies only where context-parallel ranks gather keys (cp 2 or more "
        "and cp_attention all-gather); leave it out";
    CHECK(refusal_of(R"("tp": 4, "cp_heads": 2)") == other);
    CHECK(refusal_of(R"("cp": 4, "cp_attention": "ring", "cp_heads": 2)") == other);
  }

  TEST_CASE("belong to a language module, or to the common grid of a homogeneous layout") {
    Scenario scenario = test::scenario_at("scenarios/tiny_all.json");
    for (Module& module : scenario.model.modules) module.tied = false;
    Layout layout{.placement = Placement::homogeneous,
                  .modules = std::vector<ModuleLayout>(scenario.model.modules.size())};
    layout.microbatches = scenario.data.global_batch;
    for (ModuleLayout& grid : layout.modules) grid.cp = grid.ranks = 2, grid.cp_heads = 1;
    const auto no = check_layout(scenario, layout);
    REQUIRE_MESSAGE(!no, no->reason);
    layout.placement = Placement::colocated;
    const auto why = check_layout(scenario, layout);
    REQUIRE(why);
    CHECK(why->reason == scenario.model.modules[0].name +
                             ": cp_heads 1 applies to language modules only; leave it out");
  }

  TEST_CASE("are written to a scenario file and read back") {
    const Scenario scenario = scenario_with(R"("cp": 4, "cp_heads": 2)");
    const std::string text = resolved_text(scenario);
    CHECK(text.find(R"("cp_heads": 2)") != std::string::npos);
    CHECK(read_scenario(text, "again.json", test::file_text).layout == scenario.layout);
    CHECK(describe(scenario.layout->modules[0]) == "TP1 CP4 heads by 2 PP1 DP1");
  }

  TEST_CASE("as many as a rank has are the same as no number") {
    CHECK(heads_step(R"("cp": 4)") == heads_step(R"("cp": 4, "cp_heads": 8)"));
  }

  // The first 1,024 of 4,096 tokens are 8 tiles that see 128, 256 … 1,024 keys: 4,608, and twice as
  // many for the 2 query heads of a key head, over 2·64 places: the longest, 1,024, takes
  // 128·1,024/(2·4,608) of the time of places that are all busy; half of that for two key heads, an
  // eighth for 8.
  TEST_CASE("mean launches of few heads, and the device waits for their longest rows") {
    CHECK(tail_of(R"("cp": 4)", 0) == 1);
    CHECK(tail_of(R"("cp": 4, "cp_heads": 8)", 0) == 1);
    CHECK(tail_of(R"("cp": 4, "cp_heads": 1)", 0) == doctest::Approx(128 * 1024 / 9216.0));
    CHECK(tail_of(R"("cp": 4, "cp_heads": 2)", 0) == doctest::Approx(64 * 1024 / 9216.0));
    CHECK(tail_of(R"("cp": 4, "cp_heads": 2)", 1) == doctest::Approx(128 * 1024 / 9216.0));
    CHECK(tail_of(R"("cp": 4, "cp_heads": 1)", 2) == doctest::Approx(128 * 1024 / 9216.0));
    CHECK(tail_of(R"("cp": 4)", 2) == doctest::Approx(64 * 1024 / 9216.0));
  }

  // Of 4,096 tokens a rank has 1,024; a head's k and v are 2·16·2 bytes. At the end of the forward
  // each of 4 blocks has kept 3,072 rows of all 8 heads less; in the backward 2 heads and the next
  // 2 are there.
  TEST_CASE("save a rank's own rows, and two groups are resident in addition") {
    const Bytes head(2 * 16 * 2);
    const HeadsStep whole = heads_step(R"("cp": 4)"),
                    some = heads_step(R"("cp": 4, "cp_heads": 2)");
    CHECK((whole.peak - some.peak).value == (head * (4 * 3072 * 8 - 4096 * 4)).value);
  }

  TEST_CASE("are saved likewise in a ring, with all heads of two other ranks in addition") {
    // As above; blocks of 1,024 rows.
    const Bytes head(2 * 16 * 2);
    const HeadsStep whole = heads_step(R"("cp": 4)"),
                    ring = heads_step(R"("cp": 4, "cp_attention": "ring")");
    CHECK((whole.peak - ring.peak).value == (head * (4 * 3072 * 8 - 2 * 1024 * 8)).value);
  }
}

}  // namespace polyphony
