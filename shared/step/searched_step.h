// Steps under planner dip. Every module has a pipeline of its own, and the ranks that hold several
// modules interleave their actions. The order of all actions is searched again for every batch
// (shared/planner/order_search.h), from the cost of each work on each stage (ModuleCosts::stages,
// which a run stores as it does its split into stages).
//
//   Lanes: data-parallel lanes that meet only in the reduction of their gradients each have an
//   order of their own. Lanes that wait for each other during the step (shared/step/lane_groups.h)
//   share one order, in which an action costs as much as on the lane where it is the most
//   expensive. Lanes are searched from the slowest on. A lane is not searched if a known order
//   makes it no slower than the slowest lane.
//
//   Sub-microbatches: if an encoder has more works than there are microbatches, these are
//   sub-microbatches (shared/step/assign.h). They are joined where the language module takes the
//   microbatch.
//
//   Backward: all backwards of a step are whole, or all are split in two (input and weight
//   gradients), whichever is faster. They stay whole where the two parts would take longer
//   (shared/split/fitted_costs.h).
//
//   Memory: for every action the fastest activation policy that fits in memory is chosen. Its
//   options are StageCosts::ways: recomputation up to the module's `recompute` and, with
//   `offload_activations`, offloading to the host (shared/planner/memory_choice.h).
#pragma once

#include <optional>

#include "shared/planner/order_search.h"
#include "shared/step/lane_groups.h"

namespace polyphony {

// Returns the costs of the works of a step for a group of lanes. Its ranks are the group's
// orders (orders_of()).
//   `way`    position in StageCosts::ways; modules that have fewer use their last one
//   `apart`  kept bytes are those of split backwards, counted from the forward on
StepCosts step_costs(const Model& model, const Plan& plan, const Batch& batch, const StepPlan& step,
                     const LaneGroup& lanes, std::size_t way = 0, bool apart = false);

// Returns the costs with the activation policy (recipe) that each action of the step has.
StepCosts costs_as_run(const Model& model, const Plan& plan, const Batch& batch,
                       const StepPlan& step, const LaneGroup& lanes);

// Returns the number of activation policies of the module that has the most; 0 if some module has
// no stage costs.
std::size_t count_ways(const Plan& plan);

// Replaces the orders of `step` by the fastest ones found that fit in memory. `budget` is the
// search budget. The candidates are the step's own orders and those that searches find with one
// activation policy for all actions; for each candidate, every action's policy is then chosen.
//
// With no placements in the budget nothing is searched: the other branches fill the bubbles of the
// language module's own order (shared/planner/bubble_filling.h). The step is left unchanged if a
// module has no stage costs, or if a single microbatch needs more memory than a rank has.
void search_orders(const Model& model, const Plan& plan, const Batch& batch,
                   const SearchBudget& budget, StepPlan& step);

}  // namespace polyphony
