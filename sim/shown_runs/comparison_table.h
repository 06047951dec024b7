// Recorded runs compared with their predictions, as stdout shows them.
#pragma once

#include <string>
#include <vector>

#include "sim/step_answers/comparison.h"

namespace polyphony::sim {

// Step times of all runs, then the parts of each. `bar`: share within which a step counts as
// predicted.
std::string comparison_text(const std::vector<RunComparison>& runs, double bar);

}  // namespace polyphony::sim
