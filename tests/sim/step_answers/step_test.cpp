// answer_step(): parts, notes, folding, and what would fit in memory.
#include "sim/step_answers/step.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "shared/split/planned_layout.h"
#include "sim/answer_json/answers_json.h"
#include "sim/plan_answers/plan_answer.h"
#include "sim/sweep/candidate.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/sim/runner/bench_scenario.h"

namespace polyphony::tests {
namespace {

using namespace sim;

StepAnswer answered(const Scenario& scenario, const StepOptions& options) {
  return std::get<StepAnswer>(answer_step(scenario, *scenario.layout, typical_batch(scenario),
                                          *shipped_profile(scenario.cluster), options));
}

}  // namespace

TEST_CASE("recomputation is part of the backward pass, and the answer states it") {
  Scenario scenario = test::scenario_at("scenarios/tiny.json");
  const StepAnswer kept = answered(scenario, {.predictor = Predictor::estimate});
  CHECK_FALSE(kept.recomputes);
  for (ModuleLayout& grid : scenario.layout->modules) grid.recompute = Recompute::full;
  const StepAnswer again = answered(scenario, {.predictor = Predictor::estimate});
  CHECK(again.recomputes);
  const auto backward = static_cast<std::size_t>(traces::Part::backward);
  CHECK(again.parts[0][backward] > kept.parts[0][backward]);
  const nlohmann::json json = to_json(again);
  CHECK(json["backward_recomputes"] == true);
  CHECK_FALSE(json["busiest_rank_seconds"].contains("recompute"));  // no op has this part
  CHECK(json["mfu"] == again.figures.model_flops_utilization);
  CHECK(json["chance"]["mfu"] == json["mfu"]);
}

TEST_CASE("a step, a plan and a sweep's candidate plan their layout once") {
  const Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  REQUIRE_FALSE(is_split(scenario, *scenario.layout));
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const auto plans_of = [](const auto& work) {
    const std::uint64_t before = layouts_planned();
    work();
    return layouts_planned() - before;
  };
  CHECK(plans_of([&] { answered(scenario, {.predictor = Predictor::simulate}); }) == 1);
  CHECK(plans_of([&] { answer_plan(scenario, profile); }) == 1);
  const Question question(borrow_inputs(scenario, profile));
  CHECK(plans_of([&] { estimate_candidate(question, *scenario.layout, true, {}); }) == 1);
  CHECK(plans_of([&] { examine_candidate(question, Predictor::simulate, *scenario.layout, {}); }) ==
        1);
  CHECK(plans_of([&] { stream_candidate(question, *scenario.layout, {}); }) == 1);
}

TEST_CASE("notes are part of the answer") {
  Scenario scenario = test::scenario_at("scenarios/tiny.json");
  CHECK(answered(scenario, {.predictor = Predictor::estimate, .cores = 2}).notes.empty());
  scenario.training.software = "another stack 1.0";
  const StepAnswer noted = answered(scenario, {.predictor = Predictor::estimate, .cores = 1});
  REQUIRE(noted.notes.size() == 2);
  CHECK(noted.notes[0].starts_with("the scenario uses another software stack"));
  CHECK(noted.notes[1].starts_with("2 ranks share 1 core here"));
  CHECK(to_json(noted)["notes"].size() == 2);
}

TEST_CASE("a note is given if model FLOPs exceed the peak of the device") {
  const Scenario scenario = test::scenario_at("scenarios/tiny.json");
  HardwareProfile profile = *shipped_profile(scenario.cluster);
  profile.device.memory_rate = 1e6 * profile.device.memory_rate;
  for (Seconds HardwareProfile::* time :
       {&HardwareProfile::dispatch, &HardwareProfile::op_overhead,
        &HardwareProfile::message_latency, &HardwareProfile::collective_latency,
        &HardwareProfile::optimizer_overhead})
    profile.*time = Seconds(1e-9);
  const auto answer = [&] {
    return std::get<StepAnswer>(answer_step(scenario, *scenario.layout, typical_batch(scenario),
                                            profile, {.predictor = Predictor::estimate}));
  };
  CHECK(answer().figures.model_flops_utilization < 1);
  CHECK(answer().notes.empty());
  for (const LayerKind kind :
       {LayerKind::encoder_block, LayerKind::decoder_block, LayerKind::language_head})
    for (int phase = 0; phase <= static_cast<int>(last_of(Phase{})); ++phase)
      profile.corrections[{kind, static_cast<Phase>(phase)}] = 1e-3;
  const StepAnswer fast = answer();
  CHECK(fast.figures.model_flops_utilization > 1);
  REQUIRE(fast.notes.size() == 1);
  CHECK(fast.notes[0].find("of the peak of cpu-core: profile cpu-core-roofline understates the "
                           "peak, or its corrections are too optimistic") != std::string::npos);
}

// 8 stages, 512 replicas, 64 microbatches: 8 · 512 · 64 · 6 = 1.57 million ops. On average, ranks
// of two replicas do the same as ranks of 512, except for communication between replicas.
TEST_CASE("a large step with equal replicas is folded, and a note says so") {
  const auto scenario = [](int replicas) {
    return bench_scenario({.stages = 8, .replicas = replicas, .microbatches = 64, .blocks = 1});
  };
  const StepAnswer small = answered(scenario(2), {.fold_large = true});
  CHECK(small.notes.empty());
  CHECK_FALSE(small.prediction.folded);
  CHECK(small.figures.energy.has_value());
  Scenario large = scenario(512);
  const StepAnswer answer = answered(large, {.fold_large = true});
  CHECK(answer.prediction.folded);
  REQUIRE(answer.notes.size() == 1);
  CHECK(answer.notes[0] ==
        "folded: 8 ranks represent all 4,096, an estimate; --whole predicts every rank");
  CHECK(to_json(answer)["folded"] == true);
  CHECK_FALSE(answer.figures.energy.has_value());
  CHECK(worst_by_stage(answer.prediction).size() == 8);
  CHECK(answer.figures.step > small.figures.step * 0.99);
  const auto forward = static_cast<std::size_t>(traces::Part::forward);
  CHECK(answer.mean_parts[forward].count() ==
        doctest::Approx(small.mean_parts[forward].count()).epsilon(1e-6));
  large.cluster.degraded = {{.rank = 3, .device = 0.5, .nic_of = {}}};
  std::vector<std::string> notes;
  // Memory for one replica of 3,072 ops, not for all: about 700 bytes per op.
  const auto whole =
      predict_step(large, *large.layout, typical_batch(large), *shipped_profile(large.cluster),
                   {.fold_large = true, .memory = Bytes(100'000'000)}, notes);
  CHECK(std::get<Infeasible>(whole).reason.find("this machine has only") != std::string::npos);
  CHECK(notes == std::vector<std::string>{"not folded: the layout cannot be folded: some of its "
                                          "ranks are degraded; predict it unfolded"});
}

TEST_CASE("a layout that does not fit suggests one that does") {
  Scenario scenario = test::scenario_at("scenarios/tiny.json");
  CHECK(answered(scenario, {.predictor = Predictor::estimate}).out_of_memory.empty());
  scenario.cluster.device.memory = Bytes(1);
  const StepAnswer refused = answered(scenario, {.predictor = Predictor::estimate});
  CHECK(refused.out_of_memory.starts_with("out of memory: "));
  CHECK(to_json(refused)["out_of_memory"] == refused.out_of_memory);
}

}  // namespace polyphony::tests
