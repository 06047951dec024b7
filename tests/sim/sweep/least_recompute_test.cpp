// Ranges of recomputed blocks found by a sweep, compared with all ranges.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "shared/cost/layer_costs.h"
#include "shared/hardware/devices.h"
#include "shared/search/space.h"
#include "sim/prediction/figures.h"
#include "sim/sweep/sweep.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {

using namespace sim;

// The screen counts some gigabytes less than the Programs need, here for rows of experts.
TEST_CASE("the least recomputation that fits is found: the best of all ranges") {
  Scenario scenario = read_scenario(
      R"({"polyphony": 1, "training": {"precision": "bf16"}, "model": {"language": {"preset": "deepseek-v3"}},
          "cluster": {"node": "gb200-nvl72", "nodes": 8, "nic": "400Gbps"},
          "data": {"source": "synthetic", "text": {"tokens": 4096}, "global_batch": 2304},
          "search": {"language": {"tp": 1, "cp": 1, "pp": 1, "ep": 8, "shard": "full", "shard_ranks": 0}, "microbatch": [1, 2]}})",
      "experts", test::file_text);
  HardwareProfile profile = *shipped_profile(scenario.cluster);
  profile.collectives =
      CollectiveLibrary::gloo;  // ranges are chosen by the memory of tensors alone
  Seconds best(1e300);
  int fitting = 0;
  for (Layout layout : candidates(scenario)) {
    ModuleLayout& grid = layout.modules[0];
    for (int k = 1; grid.recompute == Recompute::full && k < scenario.model.modules[0].layers;
         ++k) {
      grid.recompute_blocks = {0, k};
      const auto outcome = predict_folded(scenario, layout, profile);
      const Figures found = figures(scenario, std::get<Prediction>(outcome));
      if (found.needed_memory() > scenario.memory_limit()) continue;
      ++fitting;
      best = std::min(best, found.step);
    }
  }
  REQUIRE(fitting > 10);
  SweepOptions options;
  options.predictor = Predictor::estimate;
  const Sweep found = sweep(scenario, profile, options);
  REQUIRE_FALSE(found.ranked.empty());
  CHECK(found.ranked.front().figures.step <= best * (1 + 1e-9));
}

}  // namespace polyphony::tests
