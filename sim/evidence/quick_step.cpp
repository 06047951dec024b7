#include "sim/evidence/quick_step.h"

#include <algorithm>

#include "shared/scenario/typical_batch.h"

namespace polyphony::sim {

Prediction quick_step(const Scenario& scenario, const HardwareProfile& profile) {
  const Layout& layout = require_layout(scenario);
  auto predicted = predict_folded(scenario, layout, profile);
  if (!std::holds_alternative<Prediction>(predicted))
    predicted = predict(scenario, layout, typical_batch(scenario), profile, Predictor::estimate);
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
