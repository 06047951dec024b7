// Which data-parallel lanes wait for each other while a step's actions run, before gradients are summed at its
// end. Lanes that do not may run their actions in orders of their own, as their samples ask.
//   Lanes of any branches are together where they share ranks or cells (rank_sets()), where one works on
//   items of a sample that the other has rows of, and all of them where divided gradients or parameters are
//   exchanged action by action (Shard::gradients, Shard::full) or the plan is folded.
// Decided so: a group that lacks lanes of some branch is not looked at by itself; then all are one.
#pragma once

#include <vector>

#include "shared/step/step_plan.h"

namespace polyphony {

struct LaneGroup {
  std::vector<std::vector<std::uint32_t>> lanes;  // by branch, ascending: Work::lane
  std::vector<std::uint32_t> orders;  // of its ranks, ascending: positions in StepPlan::orders
  bool has(std::size_t branch, std::uint32_t lane) const;
};
struct LaneGroups {
  std::vector<LaneGroup> groups;       // by their first ranks
  std::vector<std::uint32_t> of_rank;  // position in groups
};
// Of a whole step.
LaneGroups lane_groups(const Plan& plan, const StepPlan& step);

// The orders of a group's ranks.
std::vector<Actions> orders_of(const StepPlan& step, const LaneGroup& group);

// `orders[g]`: what the ranks of group g run in place of orders_of(step, group).
void put_orders(const LaneGroups& groups, std::vector<std::vector<Actions>> orders, StepPlan& step);

}  // namespace polyphony
