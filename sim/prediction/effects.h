// How sure a prediction is: effects of the profile's errors on its step, and the interval. Priced
// on the ranks that stand for all where the layout folds (shared/plan/plan.h), which takes
// milliseconds, otherwise on the whole Program.
#pragma once

#include <string>
#include <vector>

#include "shared/chance/belief.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {

std::vector<double> step_effects(const Scenario& scenario, const Layout& layout,
                                 const Prediction& prediction, const HardwareProfile& profile);

// The errors that matter most, as "gemm_efficiency 4.1 %".
std::vector<std::string> largest_effects(const Belief& belief, const HardwareProfile& profile,
                                         std::size_t most);

}  // namespace polyphony::sim
