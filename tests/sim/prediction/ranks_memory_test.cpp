// Memory of all ranks that train on one machine.
#include "sim/prediction/ranks_memory.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {

using namespace sim;

TEST_CASE("ranks take their predicted peaks and a process each, if they can be predicted") {
  const Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const Bytes plenty{std::int64_t{1} << 40};
  const auto outcome =
      predict(scenario, *scenario.layout, typical_batch(scenario), profile, Predictor::estimate);
  Bytes sum = 8 * kProcess;
  for (const RankMemory& rank : std::get<Prediction>(outcome).memory) sum += rank.peak;
  const auto need = ranks_need(scenario, *scenario.layout, profile, plenty);
  REQUIRE(need);
  CHECK(need->memory == sum);
  CHECK(need->step == std::get<Prediction>(outcome).step());
  CHECK_FALSE(ranks_need(scenario, *scenario.layout, profile, Bytes(1)));
}

}  // namespace polyphony::tests
