// Contiguous partition of a chain of units into stages, exact to a billionth of the chain's cost:
//   1. the dearest stage is as cheap as can be
//   2. of such splits that of the least sum of squares: the others are as even as can be, so that
//      messages have time to hide and early stages, which hold the most tapes, are not the largest
//   3. of those the one whose ends are earliest, in lexicographic order
// A stage costs its units and what it waits for at its ends. Dynamic programme over the last stages,
// O(stages · units · units of a stage). Costs are not negative. Source: own.
#pragma once

#include <functional>
#include <vector>

namespace polyphony {

// Between two stages: how long the second waits for rows, the first for their gradients.
struct Hop {
  double rows = 0, gradients = 0;
};

struct Chain {
  std::vector<double> costs;  // by unit
  // Into `stage`, not the first, where it begins with unit `begin`. Absent: nobody waits.
  std::function<Hop(int stage, int begin)> hop = {};
  // The last end of a stage that begins there and fits in memory; `begin`: none does. Absent: all.
  std::function<int(int stage, int begin)> fits_to = {};
};

// Sizes of the `stages` parts, each at least 1; empty: none fits. Needs 1 <= stages <= units.
std::vector<int> partition_chain(const Chain& chain, int stages);

}  // namespace polyphony
