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

// Between two stages: how long the second waits for rows, the first for their gradients; infinitely:
// no stage may begin there.
struct Hop {
  double rows = 0, gradients = 0;
};

struct Chain {
  std::vector<double> costs;  // by unit
  // Into `stage`, not the first, where it begins with unit `begin`. Absent: nobody waits.
  std::function<Hop(int stage, int begin)> hop = {};
  // Bytes that the rank which holds `stage` lacks, where the chain is split so; 0: it fits. A stage
  // with more units of the same begin lacks no less. Absent: all fit.
  std::function<double(const std::vector<int>& sizes, int stage)> lacks = {};
};

// By stage and where it begins, at stage · (units + 1) + begin, one stage and one unit more than there
// are; empty: nobody waits.
std::vector<Hop> hops_of(const Chain& chain, std::size_t stages);

// Sizes of the `stages` parts, each at least 1; empty: none fits. Every stage has a rank of its own.
// Needs 1 <= stages <= units.
std::vector<int> partition_chain(const Chain& chain, int stages);

// The same for ranks that have several stages each: a rank costs the sum of its stages. From
// partition_chain() on, a unit is taken from a stage and given to another, what lies between moving
// along, as long as that makes the dearest rank cheaper, or the ranks more even. What memory is
// lacking is made good first. A heuristic: the dearest rank is no dearer than
// partition_chain() makes it without regard to memory, whose split is taken where every rank has one
// stage. tests/shared/plan/partition_test.cpp says how often it is the best. Never empty: where
// nothing fits, as if all did.
std::vector<int> partition_ranks(const Chain& chain, const std::vector<int>& rank_of_stage);

// What a split's ranks cost, and the dearest of them.
std::vector<double> rank_costs(const Chain& chain, const std::vector<int>& rank_of_stage,
                               const std::vector<int>& sizes);
// The best split but for this one, found as partition_ranks() finds it; empty: there is no other.
std::vector<int> next_best(const Chain& chain, const std::vector<int>& rank_of_stage,
                           const std::vector<int>& sizes);

}  // namespace polyphony
