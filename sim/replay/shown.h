// What a replay shows of several: one step for all, and what explains a difference.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/replay/replay.h"

namespace polyphony::sim {

// Position of the median step; the upper of two middles, where no step is the median.
std::size_t middle_of(const std::vector<Seconds>& steps);

// By label, which becomes the row's; the largest difference first.
std::vector<PathDifference> largest_first(std::map<std::string, PathDifference> by_label);

}  // namespace polyphony::sim
