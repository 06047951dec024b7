// What every turn recomputes, once the order of turns stands: the least time that fits, of several ways
// to run each (stage, work) that take time for memory.
//   minimise   Σ seconds of the chosen ways, forwards and backwards
//   such that  on every rank, whenever a forward starts, what the works in flight keep is no more than
//              the rank has room for
// Ranks are apart: a multiple-choice knapsack with one constraint a forward, solved by prices of memory
// (Lagrangian multipliers, subgradient steps) with a greedy mending of each relaxed choice. The relaxed sums
// are bounds below, so that the gap is known; 0 proves the choice. Shorter turns in the same order never end later.
// Source of the problem: Wang et al., DIP, ASPLOS 2026 (arXiv 2504.14145v2), §5.3, which gives it to an
// integer solver; of the method: Fisher, Management Science 27(1), 1981.
#pragma once

#include <optional>
#include <vector>

#include "shared/planner/step_costs.h"
#include "shared/schedule/turn.h"

namespace polyphony {

struct MemoryChoice {
  // By branch, position in BranchCosts::costs: which way.
  std::vector<std::vector<int>> way;
  Seconds seconds{};  // of all turns so
  Seconds bound{};    // no choice takes less
  double gap() const { return seconds > bound ? (seconds - bound) / bound : 0; }
};

// `ways`: the same step, run in each of them. Nothing where no choice fits the orders.
std::optional<MemoryChoice> choose_memory(const std::vector<StepCosts>& ways,
                                          const std::vector<Turns>& orders);

// The step with these choices.
StepCosts chosen(const std::vector<StepCosts>& ways, const MemoryChoice& choice);

}  // namespace polyphony
