// Figures of a prediction, for a handmade Program (energy and price: what_if_test.cpp).
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/cost/model_flops.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/split/balanced_plan.h"
#include "sim/prediction/figures.h"
#include "tests/shared/support/hand_made.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::sim {
namespace {

// Forward passes take 1 s, backward passes 2 s, everything else takes no time.
Prediction hand_made_prediction(const hand_made::PipelineShape& shape) {
  Prediction result;
  result.program = hand_made::pipeline(shape);
  result.compiled = hand_made::compile_sound(result.program);
  result.costs = hand_made::fixed_costs(result.program, result.compiled, {});
  result.estimate = estimate(result.program, result.compiled, result.costs);
  result.timeline = result.estimate.timeline;
  result.memory = predict_memory(result.program, result.timeline);
  return result;
}

// One block and the head, 4 tokens, 3 of them with a label: 2·4·(4·64 + 3·128) + 4·10·8 in the
// block, 2·3·8·32 in the head, three times: forward, input and weight gradients.
constexpr double kSample = 3 * (2 * 4 * 640 + 320 + 1536);

}  // namespace

TEST_CASE("MFU counts model FLOPs, not what the layout duplicates or recomputes") {
  // MFU · peak · ranks · step = model FLOPs.
  const auto counted = [](Prediction prediction) {
    prediction.peak = FlopsPerSecond(1000);
    return figures({}, prediction).model_flops_utilization * 1000 * prediction.program.ranks *
           prediction.step().count();
  };
  Prediction one = hand_made_prediction({.stages = 1, .microbatches = 2});
  CHECK(counted(one) == doctest::Approx(2 * kSample));
  one.program.layout.modules.front().recompute = Recompute::full;
  CHECK(counted(one) == doctest::Approx(2 * kSample));
  // Tensor-parallel ranks divide the FLOPs; norms that each of them computes count once. Each
  // replica has its own FLOPs.
  CHECK(counted(hand_made_prediction({.stages = 1, .microbatches = 2, .lanes = 1, .tensor = 2})) ==
        doctest::Approx(2 * kSample));
  CHECK(counted(hand_made_prediction({.stages = 1, .microbatches = 2, .lanes = 3})) ==
        doctest::Approx(6 * kSample));
  // A folded Program represents this many replicas.
  one.lanes = 4;
  CHECK(counted(one) == doctest::Approx(4 * 2 * kSample));
}

// The layout of tiny.json does not state the split into two stages; the profile decides it.
TEST_CASE("the predicted Program is the one that a run records and trains") {
  const Scenario scenario = test::scenario_at("scenarios/tiny.json");
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const Batch batch = typical_batch(scenario);
  const auto predicted = predict(scenario, *scenario.layout, batch, profile, Predictor::estimate);
  const Layout written =
      with_blocks(*scenario.layout, balanced_plan(scenario, *scenario.layout, profile));
  const Program run =
      lower(scenario, written, make_plan(scenario, written), batch, StepKind::train, profile.stack);
  CHECK(hash(std::get<Prediction>(predicted).program) == hash(run));
}

TEST_CASE("MFU is the same with and without tensor parallelism, folded or not") {
  // The model of tiny.json in fp32 on 8 ranks: TP2 PP2 DP2 compared with DP8.
  Scenario scenario = test::scenario_at("scenarios/tiny.json");
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  scenario.cluster.nodes = 1;
  scenario.cluster.ranks_per_node = 8;
  ModuleLayout grid;
  grid.ranks = 8;
  const Batch batch = typical_batch(scenario);
  const double model = model_flops(scenario.model, batch, scenario.training.precision).value;
  for (const auto& [tp, pp] : {std::pair(1, 1), std::pair(2, 2)}) {
    grid.tp = tp;
    grid.pp = pp;
    Layout layout = *scenario.layout;
    layout.microbatches = 1;
    layout.modules.assign(scenario.model.modules.size(), grid);
    REQUIRE_FALSE(check_layout(scenario, layout).has_value());
    const auto outcome = predict(scenario, layout, batch, profile, Predictor::estimate);
    const auto& prediction = std::get<Prediction>(outcome);
    const Figures found = figures(scenario, prediction);
    CHECK(found.model_flops_utilization * prediction.peak.value * 8 * found.step.count() ==
          doctest::Approx(model));
    const auto folded = predict_folded(scenario, layout, profile);
    if (const auto* small = std::get_if<Prediction>(&folded)) {
      CHECK(figures(scenario, *small).model_flops_utilization ==
            doctest::Approx(found.model_flops_utilization));
      CHECK(figures(scenario, *small).tokens == found.tokens);
    }
  }
}

TEST_CASE("utilization, tokens per second, price and energy of a step") {
  // 2 stages, 2 microbatches: (2 + 2 − 1)·(1 + 2) = 9 s on 2 ranks, each busy for 6.
  Prediction prediction = hand_made_prediction({.stages = 2, .microbatches = 2});
  // A second block: 2·4·640 + 320 more, three times.
  const double flops = 2 * (kSample + 3 * (2 * 4 * 640 + 320));
  prediction.peak = FlopsPerSecond(1000);
  Scenario scenario;
  scenario.cluster.dollars_per_rank_hour = 3.6;
  scenario.cluster.busy_power = Watts(500);
  scenario.cluster.idle_power = Watts(100);
  scenario.cluster.device.memory = hand_made::kParameters;
  const Figures found = figures(scenario, prediction);
  CHECK(found.step == Seconds(9));
  CHECK(found.tokens == 8);
  CHECK(found.tokens_per_second_per_rank == doctest::Approx(8 / 9.0 / 2));
  CHECK(found.model_flops_utilization == doctest::Approx(flops / (1000 * 2 * 9)));
  // 2 ranks · 0.001 dollars a second · 9 s, over 8 tokens.
  CHECK(found.dollars_per_step == doctest::Approx(0.018));
  CHECK(found.dollars_per_million_tokens == doctest::Approx(2250));
  // 100 W · 2 · 9 s and 400 W more for 2 · 6 s.
  REQUIRE(found.energy.has_value());
  CHECK(found.energy->value == doctest::Approx(6600));
  CHECK(found.kilowatt_hours() == doctest::Approx(6600 / 3.6e6));
  CHECK(found.kilowatt_hours_per_million_tokens() == doctest::Approx(6600 / 3.6e6 / 8 * 1e6));
  // Most ranks of a folded step have no ops, so that its energy is not known.
  prediction.folded = true;
  CHECK_FALSE(figures(scenario, prediction).energy.has_value());
  CHECK(figures(scenario, prediction).kilowatt_hours() == 0);
  // The first stage has the saved activations of both microbatches.
  CHECK(found.worst_rank == Rank(0));
  CHECK(found.worst_stage == "language stage 0");
  CHECK(found.peak_memory >= 4 * hand_made::kParameters + 2 * hand_made::kTape);
  CHECK_FALSE(found.fits());
}

}  // namespace polyphony::sim
