// Estimates a scenario's step. If its layout folds, representative ranks stand for all. For fits,
// which need many such estimates.
#pragma once

#include "sim/prediction/predict.h"

namespace polyphony::sim {

// Throws InputError if the layout is illegal or needs a link that the cluster does not have.
Prediction quick_step(const Scenario& scenario, const HardwareProfile& profile);
// Returns the memory of the rank that needs most.
Bytes most_memory(const Prediction& prediction);

}  // namespace polyphony::sim
