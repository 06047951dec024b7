#include "sim/question/least_nodes.h"

#include <algorithm>

namespace polyphony::sim {

int LeastNodes::most_tried() const {
  int most = 0;
  for (const Try& one : tried) most = std::max(most, one.nodes);
  return most;
}

LeastNodes least_nodes(int most, const std::function<bool(int nodes)>& fits) {
  LeastNodes found;
  const auto try_out = [&](int nodes) {
    found.tried.push_back({nodes, fits(nodes)});
    return found.tried.back().fits;
  };
  int too_few = 0, enough = 1;
  while (!try_out(enough)) {
    if (enough == most) return found;
    too_few = enough;
    enough = std::min(most, enough * 2);
  }
  while (enough - too_few > 1) {
    const int between = too_few + (enough - too_few) / 2;
    (try_out(between) ? enough : too_few) = between;
  }
  found.nodes = enough;
  return found;
}

std::vector<int> doubled(int nodes, int doublings) {
  std::vector<int> all{nodes};
  for (int i = 0; i < doublings; ++i) all.push_back(all.back() * 2);
  return all;
}

}  // namespace polyphony::sim
