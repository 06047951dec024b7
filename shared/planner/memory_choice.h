// Chooses what every action recomputes or offloads, for a fixed order of actions: the fastest
// choice that fits in memory. Each (stage, microbatch) has several options that trade time for
// memory.
//   minimize    Σ seconds of the chosen options: forwards, backwards, and the part of copies that
//               exceeds the fastest version of the action they overlap with
//               (shared/planner/host_copies.h)
//   subject to  on every rank, at every moment, the activations in flight fit in the rank's memory.
//               Moments are the starts of forwards; if activations may be offloaded, the starts of
//               all actions. Offloaded activations are resident during the forward and the action
//               after it, and during the backward and the action before it
//
// Ranks are independent: each is a multiple-choice knapsack with one constraint per moment, solved
// by Lagrangian relaxation (prices of memory, subgradient steps) with a greedy repair of each
// relaxed choice. The relaxed sums are lower bounds, so the optimality gap is known; gap 0 proves
// the choice optimal. Shorter actions in the same order never end later.
//
// Source of the problem: Wang et al., DIP, ASPLOS 2026 (arXiv 2504.14145v2), §5.3, which uses an
// integer solver. Source of the method: Fisher, Management Science 27(1), 1981.
#pragma once

#include <optional>
#include <vector>

#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

struct MemoryChoice {
  // By branch, then index into BranchCosts::costs: the chosen recipe, as a position in the ways.
  std::vector<std::vector<int>> way;
  Seconds seconds{};  // sum over all actions with this choice
  Seconds bound{};    // lower bound of that sum over all choices
  double gap() const { return seconds > bound ? (seconds - bound) / bound : 0; }
};

// Returns the choice. `ways`: the costs of the same step under each option. Returns nothing if no
// choice fits the orders.
std::optional<MemoryChoice> choose_memory(const std::vector<StepCosts>& ways,
                                          const std::vector<Actions>& orders);

// Returns the step's costs under a choice, including the time of copies that is not hidden.
StepCosts chosen(const std::vector<StepCosts>& ways, const MemoryChoice& choice,
                 const std::vector<Actions>& orders);

}  // namespace polyphony
