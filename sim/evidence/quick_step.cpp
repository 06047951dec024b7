#include "sim/evidence/quick_step.h"
#include "shared/check/check.h"

#include <algorithm>

namespace polyphony::sim {

Prediction quick_step(const Scenario& scenario, const HardwareProfile& profile) {
  const Layout& layout = require_layout(scenario);
  const PlannedLayout planned = plan_layout(borrow_inputs(scenario, profile), layout);
  auto predicted = predict_folded(planned);
  if (!std::holds_alternative<Prediction>(predicted))
    predicted = predict(planned, planned.inputs->typical(), Predictor::estimate);
  if (const auto* no = std::get_if<Infeasible>(&predicted))
    throw InputError(scenario.file, "/layout", no->reason, "give the layout that was run");
  return std::get<Prediction>(std::move(predicted));
}

Bytes most_memory(const Prediction& prediction) {
  Bytes most{};
  for (const RankMemory& memory : prediction.memory) most = std::max(most, memory.peak);
  return most;
}

}  // namespace polyphony::sim
