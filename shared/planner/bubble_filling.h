// Bubble filling: keeps the given order of one branch's actions (usually the language module's) and
// runs the actions of the other branches in its bubbles, earlier microbatches first.
//   Forwards of the branches that feed it would delay it if they had to wait for a bubble. A
//   forward of a microbatch therefore also goes before the branch's own actions from `ahead`
//   actions before the branch's first forward of that microbatch. The function tries ahead = none,
//   0, ranks, 2 · ranks, 4 · ranks, … and keeps the fastest.
//   The list scheduler places the actions (shared/planner/list_schedule.h), within the memory
//   capacity of each rank.
//
// Source: Feng et al., Optimus, arXiv 2408.03505, which runs encoders in the bubbles of the
// language module's unchanged schedule. Differences: encoders share the language module's ranks and
// pipeline here; kernels are not split to fit between its collectives; the choice of `ahead` is our
// own.
#pragma once

#include <variant>
#include <vector>

#include "shared/error.h"
#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

// Returns the actions of every rank. `orders`: actions by rank, of which only those of `branch` are
// used; its backwards run as given, whole or in two parts. Returns Infeasible if a single
// microbatch exceeds the memory of a rank.
std::variant<std::vector<Actions>, Infeasible> fill_bubbles(const StepCosts& costs,
                                                            std::size_t branch,
                                                            const std::vector<Actions>& orders);

}  // namespace polyphony
