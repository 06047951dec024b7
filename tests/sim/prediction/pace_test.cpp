// Predictions of runs with emulated compute: ranks sleep until an op would end on the real device.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "shared/check/check.h"
#include "shared/cost/compute_time.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/pace.h"
#include "shared/scenario/typical_batch.h"
#include "sim/prediction/predict.h"
#include "tests/shared/support/example_models.h"

namespace polyphony::tests {

// Two contexts with contiguous tokens: under causal attention the second has more pairs of a
// sample.
TEST_CASE("ranks with emulated compute in lockstep take as long as the slowest") {
  Scenario scenario = examples::small_on_cpu(2, 2);
  ModuleLayout grid;
  grid.cp = 2;
  grid.ranks = 2;
  Layout layout{.placement = Placement::homogeneous, .modules = {grid, grid, grid}};
  layout.microbatches = 2;
  REQUIRE_FALSE(check_layout(scenario, layout));
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  constexpr double kScale = 1000;  // everything else is small compared with the emulated time
  const auto outcome = sim::predict(scenario, layout, typical_batch(scenario), profile,
                                    sim::Predictor::estimate, PaceModel{profile, kScale});
  const auto& prediction = std::get<sim::Prediction>(outcome);
  const Program& program = prediction.program;
  std::vector<std::vector<Seconds>> times(program.ranks);  // of compute ops, in their order
  for (std::size_t op = 0; op < program.ops.size(); ++op)
    if (std::holds_alternative<Compute>(program.ops[op].what))
      times[program.streams[program.ops[op].stream.value].rank.value].push_back(
          kScale * compute_time(program, OpId(op), scenario.cluster, profile));
  REQUIRE(times.front().size() == times.back().size());
  Seconds first{}, slowest{};
  for (std::size_t i = 0; i < times.front().size(); ++i) {
    first += times.front()[i];
    slowest += std::max(times.front()[i], times.back()[i]);
  }
  CHECK(slowest > 1.001 * first);
  CHECK(prediction.estimate.step() >= slowest * (1 - 1e-9));
}

}  // namespace polyphony::tests
