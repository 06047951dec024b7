// Steps under planner dip: every module's pipeline has actions of its own on all ranks that carry it, and
// the order of all actions is searched for every batch anew (shared/planner/order_search.h) by what each
// work costs each stage (ModuleLayout::stage_costs, which a run writes down as it does its split).
//   Data-parallel lanes that meet in the sums of their gradients alone have an order each, by what their own
//   works cost; lanes that wait for each other action by action (shared/step/lane_groups.h) have one, in which a
//   action costs what it costs the lane that has the most to do. Lanes are searched from the slowest on, and
//   no more once what is known is no slower for them than the slowest.
//   Encoders' works are sub-microbatches where there are more of them than microbatches
//   (shared/step/assign.h); they are joined where the language module takes the microbatch.
//   Backwards are whole or all in two parts, whichever is quicker, but whole where their parts would take
//   longer than that (shared/split/fitted_costs.h).
//   What an action recomputes, or sends to the host and back, is what takes the least time that fits: of the ways
//   that stage_costs has, which are those up to the module's `recompute` and, with `offload_activations`,
//   that one (shared/planner/memory_choice.h).
// Source: Wang et al., DIP, ASPLOS 2026 (arXiv 2504.14145v2), sections 4 and 5; own code.
#pragma once

#include <optional>

#include "shared/planner/order_search.h"
#include "shared/step/lane_groups.h"

namespace polyphony {

// What the works of a step cost a group of lanes: ranks are its orders (orders_of()); `way`: position in
// StageCosts::ways, of modules that have fewer the last. `apart`: what backwards in two parts keep, as if all
// of it were there from the forward on.
StepCosts step_costs(const Model& model, const Plan& plan, const Batch& batch, const StepPlan& step,
                     const LaneGroup& lanes, std::size_t way = 0, bool apart = false);

// As the step's actions recompute.
StepCosts costs_as_run(const Model& model, const Plan& plan, const Batch& batch,
                       const StepPlan& step, const LaneGroup& lanes);

// How many ways the modules with the most of them have; 0: some module has no costs.
std::size_t count_ways(const Plan& plan);

// The step with the quickest orders that fit: its own, or those that searches found with every action run in
// one of the ways, then with what each action recomputes chosen; `budget` is a search's. Without placements nothing is searched: all
// other branches fill the bubbles of the language module's own order (shared/planner/bubble_filling.h). As it
// is where no costs are known, or a microbatch alone keeps more than a rank has room for.
void search_orders(const Model& model, const Plan& plan, const Batch& batch,
                   const SearchBudget& budget, StepPlan& step);

}  // namespace polyphony
