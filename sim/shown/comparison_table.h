// Recorded runs beside their predictions, for people.
#pragma once

#include <string>
#include <vector>

#include "sim/step_answers/comparison.h"

namespace polyphony::sim {

// Step times of all, then the parts of each.
std::string comparison_text(const std::vector<RunComparison>& runs, double bar);

}  // namespace polyphony::sim
