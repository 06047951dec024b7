// Chooses what to show of several steps: one step for all, and what explains a difference.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/replay/replay.h"

namespace polyphony::sim {

// Returns the index of the median step; of an even number, the upper of the two middle ones.
std::size_t middle_of(const std::vector<Seconds>& steps);

// Returns the rows with their labels set, the largest difference first.
std::vector<PathDifference> largest_first(std::map<std::string, PathDifference> by_label);

}  // namespace polyphony::sim
