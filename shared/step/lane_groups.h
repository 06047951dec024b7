// Groups of data-parallel lanes that wait for each other while the actions of a step run, before
// gradients are reduced at the end of the step. Lanes in different groups may run their actions in
// different orders, each suited to its own samples.
//
//   Lanes of any branches belong to one group if they share ranks or cells (rank_sets()), or if one
//   works on items of a sample whose rows the other holds. All lanes form one group if sharded
//   gradients or parameters are exchanged after every action (Shard::gradients, Shard::full), or if
//   the plan is folded. They also do if any group would lack lanes of some branch.
#pragma once

#include <vector>

#include "shared/step/step_plan.h"

namespace polyphony {

struct LaneGroup {
  std::vector<std::vector<std::uint32_t>> lanes;  // by branch: Work::lane, ascending
  std::vector<std::uint32_t> orders;  // positions in StepPlan::orders of its ranks, ascending
  bool has(std::size_t branch, std::uint32_t lane) const;
};
struct LaneGroups {
  std::vector<LaneGroup> groups;       // ordered by their first ranks
  std::vector<std::uint32_t> of_rank;  // by rank: position in groups
};
// Returns the groups of a step. `step` must be whole, not one rank's part.
LaneGroups lane_groups(const Plan& plan, const StepPlan& step);

// Returns the orders of a group's ranks.
std::vector<Actions> orders_of(const StepPlan& step, const LaneGroup& group);

// Replaces the orders in `step`: `orders[g]` takes the place of orders_of(step, group g).
void put_orders(const LaneGroups& groups, std::vector<std::vector<Actions>> orders, StepPlan& step);

}  // namespace polyphony
