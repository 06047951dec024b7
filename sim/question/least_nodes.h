// The least number of whole nodes on which a layout fits: `polyphony ask --gpus ?xH100`.
#pragma once

#include <functional>
#include <vector>

namespace polyphony::sim {

struct LeastNodes {
  struct Try {
    int nodes = 0;
    bool fits = false;
  };
  int nodes = 0;  // 0: none of those tried is enough
  std::vector<Try> tried;
  int most_tried() const;
};

// Doubles the number of nodes until `fits` returns true, at most to `most`, and halves the interval
// that is left. The result fits, and one node less does not. Fewer nodes may still fit if memory is
// not what decides: a number may divide neither layers nor heads, and a smaller one both.
LeastNodes least_nodes(int most, const std::function<bool(int nodes)>& fits);

// Returns the number and its next `doublings` doublings.
std::vector<int> doubled(int nodes, int doublings);

}  // namespace polyphony::sim
