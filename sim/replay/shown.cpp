#include "sim/replay/shown.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace polyphony::sim {

std::size_t middle_of(const std::vector<Seconds>& steps) {
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return steps[a] < steps[b]; });
  return order[order.size() / 2];
}

std::vector<PathDifference> largest_first(std::map<std::string, PathDifference> by_label) {
  std::vector<PathDifference> rows;
  for (auto& [label, row] : by_label) {
    row.label = label;
    rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const PathDifference& a, const PathDifference& b) {
    return std::abs(a.difference().count()) > std::abs(b.difference().count());
  });
  return rows;
}

}  // namespace polyphony::sim
