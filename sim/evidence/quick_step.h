// A scenario's step estimated, by ranks that stand for all where its layout folds: what fits ask for
// again and again.
#pragma once

#include "sim/prediction/predict.h"

namespace polyphony::sim {

// InputError: the layout is illegal, or asks for a link that the cluster does not have.
Prediction quick_step(const Scenario& scenario, const HardwareProfile& profile);
Bytes most_memory(const Prediction& prediction);

}  // namespace polyphony::sim
