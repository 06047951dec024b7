// Which of several steps is shown for all of them.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "shared/units.h"

namespace polyphony::sim {

// Position of the median step; the upper of two middles, where no step is the median.
inline std::size_t middle_of(const std::vector<Seconds>& steps) {
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return steps[a] < steps[b]; });
  return order[order.size() / 2];
}

}  // namespace polyphony::sim
