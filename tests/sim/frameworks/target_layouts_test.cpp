// Searches for a framework: all that they answer with can be written for it, and nothing that can
// is faster.
#include "sim/frameworks/target_layouts.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/scenario_io/scenario_profile.h"
#include "shared/split/planned_layout.h"
#include "sim/frameworks/target_change.h"
#include "sim/load/load.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::sim {
namespace {

// An encoder and Llama 8B on 16 H100s. `search`: of both modules.
Scenario captions(const std::string& search, const std::string& encoder = "internvit-6b") {
  return read_scenario(R"({"polyphony": 1, "training": {"precision": "bf16"},
      "model": {"vision": {"preset": ")" +
                           encoder + R"("}, "projector": {"kind": "projector", "from": "vision"},
                "language": {"preset": "llama-3.1-8b", "from": "projector"}},
      "cluster": {"node": "hgx-h100", "nodes": 2},
      "data": {"source": "synthetic", "images": {"per_sample": 4}, "text": {"tokens": 1804},
               "sequence": 8192, "global_batch": 64}, "search": )" +
                           search + "}",
                       "captions", test::file_text);
}

constexpr const char* kPipelines = R"({"placement": "homogeneous", "microbatch": 1,
    "schedule": ["1f1b", "interleaved"],
    "vision": {"cp": 1}, "language": {"tp": [1, 2], "pp": [2, 4], "cp": 1, "vpp": [1, 2], "sp": true,
    "shard": "optimizer"}})";

Sweep search(const Scenario& scenario, const SweepTarget& target) {
  SweepOptions options;
  options.jobs = 2;
  options.predictor = Predictor::estimate;
  options.target = target;
  return sweep(scenario, load_profile(scenario, {}), options);
}

bool runs(const Scenario& scenario, const Layout& layout, const TargetVersion& target) {
  return emit_planned(scenario, layout, load_profile(scenario, {}), target).cannot.empty();
}

}  // namespace

TEST_CASE("target: every row can be written, and no layout that can is faster") {
  const Scenario scenario = captions(kPipelines);
  const TargetVersion bridge = Target::megatron_bridge;
  const Sweep any = search(scenario, {}), found = search(scenario, sweep_target(bridge));
  REQUIRE(any.ranked.size() > 3);
  REQUIRE(found.ranked.size() > 3);
  CHECK_FALSE(found.none_runs);
  for (const Candidate& c : found.ranked) {
    CAPTURE(c.text);
    CHECK(runs(scenario, c.layout, bridge));
  }
  const Seconds best = found.ranked.front().figures.step;
  for (const Candidate& c : any.ranked)
    if (c.figures.step < best) CHECK_FALSE(runs(scenario, c.layout, bridge));
  // The encoder's 45 blocks are balanced over several stages where nothing keeps them together.
  REQUIRE(found.beyond);
  CHECK(found.beyond->layout == any.ranked.front().layout);
  CHECK(found.beyond->figures.step < best);
  const TargetFound told = target_found(scenario, load_profile(scenario, {}), found, bridge);
  CHECK(told.runs);
  CHECK(told.slower == doctest::Approx(best / found.beyond->figures.step - 1));
  REQUIRE_FALSE(told.missing.empty());
  CHECK(found_text(told).find("megatron-bridge can run every row. The best layout of all takes") ==
        0);
}

TEST_CASE("target: if it runs all rows, the answer is that of any trainer") {
  const Scenario scenario = captions(R"({"placement": "homogeneous", "microbatch": 1,
      "vision": {"cp": 1}, "language": {"tp": [4, 8], "pp": 1, "cp": 1, "sp": true,
      "recompute": ["none", "full"], "shard": "optimizer"}})",
                                     "siglip-so400m-14");
  const Sweep any = search(scenario, {}),
              found = search(scenario, sweep_target(Target::megatron_bridge));
  REQUIRE_FALSE(any.ranked.empty());
  REQUIRE(found.ranked.size() == any.ranked.size());
  for (std::size_t i = 0; i < any.ranked.size(); ++i)
    CHECK(found.ranked[i].layout == any.ranked[i].layout);
  CHECK_FALSE(found.beyond);
}

TEST_CASE("target: a framework that can run none is said") {
  const Scenario scenario = captions(kPipelines);
  const Sweep found = search(scenario, sweep_target(Target::torchtitan));
  REQUIRE_FALSE(found.ranked.empty());
  CHECK(found.none_runs);
  const TargetFound told =
      target_found(scenario, load_profile(scenario, {}), found, Target::torchtitan);
  CHECK_FALSE(told.runs);
  CHECK(found_text(told).find("torchtitan can run none of the layouts") == 0);
}

TEST_CASE("target: before Megatron-LM 0.13 stages that have no setting are made even") {
  Scenario scenario = read_scenario(R"({"polyphony": 1, "training": {"precision": "bf16"},
      "model": {"language": {"preset": "llama-3.1-8b"}}, "cluster": {"node": "hgx-h100", "nodes": 1},
      "data": {"source": "synthetic", "text": {"tokens": 4096}, "sequence": 4096, "global_batch": 64},
      "layout": {"placement": "homogeneous", "microbatches": 64, "schedule": "interleaved",
                 "all": {"tp": 2, "sp": true, "pp": 4, "vpp": 2}}})",
                                    "s.json", test::file_text);
  const HardwareProfile profile = load_profile(scenario, {});
  const TargetVersion old = parse_target("megatron-lm@0.12");
  const auto inputs = borrow_inputs(scenario, profile);
  const Layout planned = plan_layout(inputs, *scenario.layout).resolved;
  REQUIRE_FALSE(runs(scenario, planned, old));  // uneven, since the last stage has the head
  const std::optional<Layout> form = runnable_form(*inputs, *scenario.layout, old);
  REQUIRE(form);
  CHECK(form->modules[0].blocks == std::vector<int>(8, 4));
  CHECK(runnable_form(*inputs, *scenario.layout, Target::megatron_lm) == scenario.layout);
}

// 36 blocks on 8 stages, 80 on 12: no even stages.
TEST_CASE("target: before Megatron-LM 0.13 the first and the last stage take what is left over") {
  const TargetVersion old = parse_target("megatron-lm@0.12");
  const auto form_of = [&](const std::string& preset, int pp) {
    const std::string count = std::to_string(pp);
    const Scenario scenario = read_scenario(
        R"({"polyphony": 1, "training": {"precision": "bf16"}, "model": {"language": {"preset": ")" +
            preset + R"("}}, "cluster": {"node": {"device": "H100", "ranks": 4}, "nodes": )" +
            std::to_string(pp / 4) + R"(}, "data": {"source": "synthetic",
             "text": {"tokens": 4096}, "sequence": 4096, "global_batch": 64},
             "layout": {"placement": "homogeneous", "microbatches": 64, "schedule": "1f1b",
             "all": {"pp": )" +
            count + "}}}",
        "s.json", test::file_text);
    const HardwareProfile profile = load_profile(scenario, {});
    const std::optional<Layout> form =
        runnable_form(*borrow_inputs(scenario, profile), *scenario.layout, old);
    REQUIRE(form);
    CHECK(runs(scenario, *form, old));
    return *form;
  };
  form_of("qwen3-8b", 8);
  form_of("llama-3.1-70b", 12);
}

TEST_CASE("target: where some blocks cannot recompute alone, all do") {
  Scenario scenario = captions(kPipelines);
  const HardwareProfile profile = load_profile(scenario, {});
  ModuleLayout grid;
  grid.ranks = 16;
  grid.pp = 2;
  grid.recompute = Recompute::full;
  grid.recompute_blocks = {0, 8};
  Layout layout;
  layout.modules.assign(3, grid);
  layout.microbatches = 8;
  REQUIRE_FALSE(runs(scenario, layout, Target::megatron_bridge));
  const std::optional<Layout> form =
      runnable_form(*borrow_inputs(scenario, profile), layout, Target::megatron_bridge);
  REQUIRE(form);
  for (const ModuleLayout& of : form->modules) {
    CHECK(of.recompute == Recompute::full);
    CHECK(of.recompute_blocks.empty());
  }
  CHECK(runs(scenario, *form, Target::megatron_bridge));
}

TEST_CASE("target: the search is restricted to what the framework has") {
  const Scenario open = captions("{}"),
                 some = captions(R"({"placement": ["colocated", "homogeneous"],
                      "language": {"shard": ["optimizer", "full"]}})");
  const Search of_any = *restricted_to(Target::torchtitan, open).search;
  CHECK(of_any.placement == std::vector{Placement::homogeneous});
  CHECK(of_any.modules[2].cp_attention == std::vector{ContextAttention::all_gather});
  const Search of_some = *restricted_to(Target::ms_swift, some).search;
  CHECK(of_some.placement == std::vector{Placement::homogeneous});
  CHECK(of_some.modules[2].shard == std::vector{Shard::optimizer});
  CHECK(of_some.schedule == std::vector{ScheduleKind::one_f_one_b, ScheduleKind::interleaved});
}

}  // namespace polyphony::sim
