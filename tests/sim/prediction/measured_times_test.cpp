// Pipelines of modules given only by their times, on links without cost: step times derived by
// hand, and published ones.
#include <doctest/doctest.h>

#include "shared/cost/layer_costs.h"
#include "shared/hardware/devices.h"
#include "shared/plan/plan.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/scenario_io/scenario_profile.h"
#include "shared/screen/bound.h"
#include "shared/split/balanced_plan.h"
#include "sim/prediction/predict.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

Scenario ask(const std::string& model, int ranks, int batch, const std::string& layout) {
  const std::string text =
      R"({"polyphony": 1, "model": {)" + model +
      R"(}, "cluster": {"node": {"device": "H100", "ranks": )" + std::to_string(ranks) +
      R"(}, "free_links": true}, "data": {"global_batch": )" + std::to_string(batch) +
      R"(}, "layout": {)" + layout + R"(, "microbatches": )" + std::to_string(batch) + "}}";
  return read_scenario(text, "s.json", test::file_text);
}

// A profile without overheads: nothing is added for an op, an update or a message.
HardwareProfile times_of(const Scenario& scenario) {
  HardwareProfile profile = scenario_profile(scenario, test::file_text);
  profile.op_overhead = profile.optimizer_overhead = Seconds(0);
  return profile;
}

// Returns the bound, the estimate and the simulated step of the scenario's layout, in this order.
double step_of(const Scenario& scenario) {
  const HardwareProfile profile = times_of(scenario);
  const Batch batch = typical_batch(scenario);
  const auto outcome =
      sim::predict(scenario, *scenario.layout, batch, profile, sim::Predictor::simulate);
  REQUIRE(std::holds_alternative<sim::Prediction>(outcome));
  const auto& prediction = std::get<sim::Prediction>(outcome);
  const double estimate = prediction.estimate.step().count(), step = prediction.step().count();
  CHECK(Screen(scenario, profile, batch).bound(*scenario.layout).step.count() <=
        estimate * (1 + 1e-12));
  CHECK(estimate <= step * (1 + 1e-9));
  return step;
}

const std::string kApart =
    R"("placement": "non-colocated", "vision": {"ranks": 1}, "audio": {"ranks": 2, "pp": 2},
       "language": {"ranks": 3, "pp": 3})";

}  // namespace

TEST_SUITE("measured times") {
  // Two encoders of 1 and 2 stages in parallel, then a language module of 3: 5 stages on the longer
  // path. Each forward takes 1 s, each backward 2: (12 + 5 − 1)·3.
  TEST_CASE("encoders in parallel: 48 s") {
    const Scenario scenario = ask(
        R"("vision": {"layers": 1, "layer_times": {"forward": "1s", "backward_weight": "2s"}},
           "audio": {"layers": 2, "layer_times": {"forward": "1s", "backward_input": "0s", "backward_weight": "2s"}},
           "language": {"from": ["vision", "audio"], "layers": 3,
                        "layer_times": {"forward": "1s", "backward_input": "1.5s", "backward_weight": "0.5s"}})",
        6, 12, kApart);
    CHECK(step_of(scenario) == doctest::Approx(48).epsilon(1e-9));
  }

  // Frozen encoders, followed by a trained projector: they have no backward. The frozen language
  // module passes gradients on in 1 s: 2 + (12 + 3 − 1)·2.
  TEST_CASE("frozen encoders, a frozen language module that passes gradients on: 30 s") {
    const Scenario scenario = ask(
        R"("vision": {"layers": 1, "train": "frozen", "layer_times": {"forward": "1s", "backward_weight": "2s"}},
           "audio": {"layers": 2, "train": "frozen", "layer_times": {"forward": "1s", "backward_weight": "2s"}},
           "projector": {"from": "vision", "layer_times": {"forward": "0s", "backward_weight": "0s"}},
           "audio_projector": {"kind": "projector", "from": "audio", "layer_times": {"forward": "0s", "backward_weight": "0s"}},
           "language": {"from": ["projector", "audio_projector"], "layers": 3, "train": "frozen",
                        "layer_times": {"forward": "1s", "backward_input": "1s", "backward_weight": "5s"}})",
        6, 12, kApart);
    CHECK(step_of(scenario) == doctest::Approx(30).epsilon(1e-9));
  }

  TEST_CASE("a chain of 1 and 3 stages: 33 s") {
    const std::string model =
        R"("vision": {"layers": 1, "layer_times": {"forward": "1s", "backward_weight": "2s"}},
           "language": {"from": "vision", "layers": 3,
                        "layer_times": {"forward": "1s", "backward_input": "1s", "backward_weight": "1s"}})";
    const Scenario scenario =
        ask(model, 4, 8, R"("placement": "homogeneous", "all": {"pp": 4, "blocks": [1, 1, 1, 1]})");
    CHECK(step_of(scenario) == doctest::Approx(33).epsilon(1e-9));  // (8 + 4 − 1)·3
    // With separate weight gradients: the last stage starts at 3 s and, after 8 forwards, 8 input
    // gradients and 4 weight gradients in between, ends its last input gradient at 23 s. Two stages
    // later it reaches the first stage, whose weight gradients take 2 s.
    const Scenario split = ask(model, 4, 8,
                               R"("placement": "homogeneous", "schedule": "zero-bubble",
                                  "all": {"pp": 4, "blocks": [1, 1, 1, 1]})");
    CHECK(step_of(split) == doctest::Approx(27).epsilon(1e-9));
  }

  // DIP (arXiv 2504.14145, introduction): 64 vision layers of 6.75 ms forward and backward, 64 of
  // language of 10.5, over 16 stages: none can be quicker than seven of language, 73.5 ms, and
  // 1F1B of 64 microbatches takes the sum of all plus 63 times the slowest,
  // 64·17.25 + 63·73.5 = 5734.5 ms.
  TEST_CASE("64 vision and 64 language layers over 16 stages: 73.5 ms the slowest, 5.73 s a step") {
    const Scenario scenario = ask(
        R"("vision": {"layers": 64, "layer_times": {"forward": "2.25ms", "backward_input": "0s", "backward_weight": "4.5ms"}},
           "language": {"from": "vision", "layers": 64,
                        "layer_times": {"forward": "3.5ms", "backward_input": "3.5ms", "backward_weight": "3.5ms"}})",
        16, 64, R"("placement": "homogeneous", "all": {"pp": 16})");
    const HardwareProfile profile = times_of(scenario);
    const LayerCosts costs = layer_costs(
        scenario, *scenario.layout, module_sizes(scenario.model, typical_batch(scenario)), profile);
    const Plan plan = balanced_plan(scenario, *scenario.layout, profile);
    REQUIRE(plan.branches.size() == 1);
    Seconds slowest{};
    for (const Stage& stage : plan.branches[0].stages) {
      Seconds sum{};
      for (const Chunk& chunk : stage.chunks)
        for (int layer = chunk.layers.begin; layer < chunk.layers.end; ++layer)
          sum += costs[chunk.module.value][static_cast<std::size_t>(layer)].total();
      slowest = std::max(slowest, sum);
    }
    CHECK(slowest.count() == doctest::Approx(0.0735).epsilon(1e-9));
    CHECK(step_of(scenario) == doctest::Approx(5.7345).epsilon(0.01));
  }

  TEST_CASE("links without cost change no predictor; links with cost do") {
    const std::string model =
        R"("vision": {"layers": 2, "output": "1MB", "layer_times": {"forward": "1ms", "backward_input": "1ms", "backward_weight": "1ms"}},
           "language": {"from": "vision", "layers": 2, "output": "1MB", "parameters": "100MB",
                        "layer_times": {"forward": "1ms", "backward_input": "1ms", "backward_weight": "1ms"}})";
    Scenario scenario =
        ask(model, 4, 4, R"("placement": "homogeneous", "all": {"pp": 2, "shard": "optimizer"})");
    scenario.layout->microbatches = 2;
    const double free = step_of(scenario);
    scenario.cluster.free_links = false;
    const double paid = step_of(scenario);
    // 100 MB of gradients per replica over 450 GB/s take 0.2 ms and more
    CHECK(paid > free + 1e-4);
    scenario.cluster.node_link.rate = BytesPerSecond(1e9);
    CHECK(step_of(scenario) > paid + 0.05);
  }
}

}  // namespace polyphony::tests
