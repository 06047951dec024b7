// What every action recomputes, or sends to the host and back, once the order of actions stands: the least time
// that fits, of several ways to run each (stage, work) that take time for memory.
//   minimise   Σ seconds of the chosen ways, forwards, backwards, and of copies what they take longer than
//              the quickest actions beside which they run (shared/planner/host_copies.h)
//   such that  on every rank, at every moment, what the works in flight keep is no more than the rank has
//              room for. Moments are starts of forwards; where tapes may move, of all actions: these are there
//              with the forward and the action behind it, and with the backward and the action before
// Ranks are apart: a multiple-choice knapsack with one constraint a moment, solved by prices of memory
// (Lagrangian multipliers, subgradient steps) with a greedy mending of each relaxed choice. The relaxed sums
// are bounds below, so that the gap is known; 0 proves the choice. Shorter actions in the same order never end later.
// Source of the problem: Wang et al., DIP, ASPLOS 2026 (arXiv 2504.14145v2), §5.3, which gives it to an
// integer solver; of the method: Fisher, Management Science 27(1), 1981.
#pragma once

#include <optional>
#include <vector>

#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

struct MemoryChoice {
  // By branch, position in BranchCosts::costs: which way.
  std::vector<std::vector<int>> way;
  Seconds seconds{};  // of all actions so
  Seconds bound{};    // no choice takes less
  double gap() const { return seconds > bound ? (seconds - bound) / bound : 0; }
};

// `ways`: the same step, run in each of them. Nothing where no choice fits the orders.
std::optional<MemoryChoice> choose_memory(const std::vector<StepCosts>& ways,
                                          const std::vector<Actions>& orders);

// The step with these choices, copies paid for.
StepCosts chosen(const std::vector<StepCosts>& ways, const MemoryChoice& choice,
                 const std::vector<Actions>& orders);

}  // namespace polyphony
