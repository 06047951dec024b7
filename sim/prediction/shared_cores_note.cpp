#include "sim/prediction/shared_cores_note.h"

#include "shared/text/figure_text.h"

namespace polyphony::sim {

std::optional<std::string> shared_cores_note(const Scenario& scenario, int cores) {
  const int ranks = scenario.cluster.ranks();
  if (cores == 0 || scenario.cluster.device.name != "cpu-core" || ranks <= cores) return {};
  return std::to_string(ranks) + " ranks share " + counted(cores, "core", "cores") +
         " here, but the prediction assumes one core per rank (to measure such layouts, use "
         "polyphony rehearse)";
}

}  // namespace polyphony::sim
