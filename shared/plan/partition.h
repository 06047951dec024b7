// Splits a chain of units (blocks) into contiguous pipeline stages of costs as equal as possible.
// The split is optimal up to a billionth of the chain's total cost:
//   1. The most expensive stage (the bottleneck) costs as little as possible.
//   2. Among such splits, the sum of squared stage costs is the smallest: the other stages are as
//      even as possible, so that messages can be hidden behind them and the early stages, which
//      hold the most saved activations, are not the largest.
//   3. Among those, the one whose stage ends are the earliest in lexicographic order.
//
// The cost of a stage is the sum of its units' costs plus the waiting times at its two ends. Costs
// must not be negative. Method: dynamic programming from the last stage backwards, in
// O(stages · units · units per stage). Source: own.
#pragma once

#include <functional>
#include <vector>

namespace polyphony {

// Waiting times at the boundary between two stages, in the unit of Chain::costs. `rows` is how long
// the later stage waits for the rows of the earlier one, and `gradients` how long the earlier stage
// waits for their gradients. Infinity means that no stage may begin there.
struct Hop {
  double rows = 0, gradients = 0;
};

struct Chain {
  std::vector<double> costs;  // one per unit, all in one unit of measure (seconds, or FLOPs)
  // Returns the waiting times in front of `stage` (not the first) if it begins with unit `begin`.
  // Absent: no waiting times.
  std::function<Hop(int stage, int begin)> hop = {};
  // Returns the bytes by which the rank that holds `stage` exceeds its memory under this split; 0:
  // it fits. Among stages with the same begin, one with more units must exceed it by no less.
  // Absent: every split fits.
  std::function<double(const std::vector<int>& sizes, int stage)> lacks = {};
};

// Returns the waiting times for every stage and begin, at index stage · (units + 1) + begin, with
// room for one more stage and one more unit. Empty if the chain has no waiting times.
std::vector<Hop> hops_of(const Chain& chain, std::size_t stages);

// Returns the number of units (at least 1) of each of `stages` stages, each on a rank of its own.
// Empty if no split fits in memory. Requires 1 <= stages <= units.
std::vector<int> partition_chain(const Chain& chain, int stages);
// The same, with hops_of(chain, stages) given.
std::vector<int> partition_chain(const Chain& chain, int stages, const std::vector<Hop>& hops);

// Does the same for ranks that hold several stages each (virtual stages): the cost of a rank is the
// sum of its stages' costs. Never returns empty: if no split fits in memory, memory is ignored.
//
// This is a local search. It starts from partition_chain() and moves one unit from a stage to
// another, shifting the stages between them, as long as that makes the most expensive rank cheaper
// or the ranks more even. Excess memory is removed first. Where every rank holds one stage, the
// result is that of partition_chain(). Otherwise, unless memory is short, the most expensive rank
// is never more expensive than partition_chain() makes it. tests/shared/plan/partition_test.cpp
// states how often the result is optimal.
std::vector<int> partition_ranks(const Chain& chain, const std::vector<int>& rank_of_stage);

// Returns the cost of every rank under a split.
std::vector<double> rank_costs(const Chain& chain, const std::vector<int>& rank_of_stage,
                               const std::vector<int>& sizes);
// Returns the best split other than `sizes`, found as by partition_ranks(). Empty if there is none.
std::vector<int> next_best(const Chain& chain, const std::vector<int>& rank_of_stage,
                           const std::vector<int>& sizes);

}  // namespace polyphony
