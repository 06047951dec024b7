// The figures of a prediction, of a Program made by hand (energy and price: what_if_test.cpp).
#include <doctest/doctest.h>

#include "sim/prediction/figures.h"
#include "tests/shared/support/hand_made.h"

namespace polyphony::sim {
namespace {

// Forwards take 1 s, backwards 2 s, everything else nothing.
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

TEST_CASE("model FLOPs: three forwards of products and attention, whatever is recomputed") {
  Prediction one = hand_made_prediction({.stages = 1, .microbatches = 2});
  CHECK(model_flops(one.program).value == doctest::Approx(2 * kSample));
  one.program.layout.modules.front().recompute = Recompute::full;
  CHECK(model_flops(one.program).value == doctest::Approx(2 * kSample));
  // Tensor-parallel ranks share them; of lanes each has its own.
  CHECK(model_flops(hand_made::pipeline({.stages = 1, .microbatches = 2, .lanes = 1, .tensor = 2}))
            .value == doctest::Approx(2 * kSample));
  CHECK(model_flops(hand_made::pipeline({.stages = 1, .microbatches = 2, .lanes = 3})).value ==
        doctest::Approx(6 * kSample));
}

TEST_CASE("utilization, tokens a second, price and energy of a step") {
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
  CHECK(found.energy.value == doctest::Approx(6600));
  CHECK(found.kilowatt_hours() == doctest::Approx(6600 / 3.6e6));
  CHECK(found.kilowatt_hours_per_million_tokens() == doctest::Approx(6600 / 3.6e6 / 8 * 1e6));
  // The first stage holds both microbatches' tapes.
  CHECK(found.worst_rank == Rank(0));
  CHECK(found.worst_stage == "language stage 0");
  CHECK(found.peak_memory >= 4 * hand_made::kParameters + 2 * hand_made::kTape);
  CHECK_FALSE(found.fits());
}

}  // namespace polyphony::sim
