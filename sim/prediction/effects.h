// How uncertain a prediction is: the effect of each of the profile's stated errors on the step
// time. If the layout folds (shared/plan/plan.h), costs are computed on representative ranks, which
// takes milliseconds; otherwise on the whole Program.
#pragma once

#include <string>
#include <vector>

#include "shared/chance/belief.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {

// Returns one relative change of the step time per entry of HardwareProfile::certainty.errors.
// `prediction` is of the planned layout.
std::vector<double> step_effects(const PlannedLayout& planned, const Prediction& prediction);
// Plans the layout first.
std::vector<double> step_effects(const Scenario& scenario, const Layout& layout,
                                 const Prediction& prediction, const HardwareProfile& profile);

// Returns the up to `most` errors with the largest effects, largest first, each as a text such as
// "gemm_efficiency 4.1 %". Effects below 0.05 % are omitted.
std::vector<std::string> largest_effects(const Belief& belief, const HardwareProfile& profile,
                                         std::size_t most);

}  // namespace polyphony::sim
