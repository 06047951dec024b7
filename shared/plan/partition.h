// Contiguous partition of a chain of units into stages, minimising the largest stage cost (exact
// dynamic programme, O(stages · units · log units)). Costs are not negative.
#pragma once

#include <vector>

namespace polyphony {

// Sizes of the `stages` parts, each at least 1; the first of several optima in lexicographic order
// of part ends is taken, so the result is deterministic. Needs 1 <= stages <= costs.size().
std::vector<int> partition_chain(const std::vector<double>& costs, int stages);

}  // namespace polyphony
