#include "sim/prediction/ranks_memory.h"

#include "shared/scenario/typical_batch.h"
#include "sim/prediction/need.h"

namespace polyphony::sim {

std::optional<RanksNeed> ranks_need(const Scenario& scenario, const Layout& layout,
                                    const HardwareProfile& profile, Bytes free) {
  if (check_need(scenario, layout, {.predictor = Predictor::estimate}, free)) return {};
  const auto outcome =
      predict(scenario, layout, typical_batch(scenario), profile, Predictor::estimate);
  const auto* prediction = std::get_if<Prediction>(&outcome);
  if (prediction == nullptr) return {};
  RanksNeed need{{}, prediction->step()};
  for (const RankMemory& rank : prediction->memory) need.memory += rank.peak + kProcess;
  return need;
}

}  // namespace polyphony::sim
