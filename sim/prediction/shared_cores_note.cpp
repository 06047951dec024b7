#include "sim/prediction/shared_cores_note.h"

#include "shared/text/figure_text.h"

namespace polyphony::sim {

std::optional<std::string> shared_cores_note(const Scenario& scenario, int cores) {
  const int ranks = scenario.cluster.ranks();
  if (cores == 0 || scenario.cluster.device.name != "cpu-core" || ranks <= cores) return {};
  return std::to_string(ranks) + " ranks share " + counted(cores, "core", "cores") +
         " here; the prediction gives each rank a core of its own (polyphony rehearse plays "
         "such layouts truly)";
}

}  // namespace polyphony::sim
