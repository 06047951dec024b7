// StepPlan: the decisions of one training step. It comes between the Plan (which rank holds which
// layers) and the Program (every op of every rank). It consists of:
//   assignment  Which samples, items and rows each work holds (WorkTable). Numbers of works have no
//               meaning across branches: a language work needs those encoder works that hold its
//               items.
//   order       The actions of every rank (shared/schedule/action.h). All ranks of a rank set (see
//               rank_sets()) share one order, over all branches that they hold.
//   prefetch    How many messages are received ahead of the action that reads them, counted in
//               actions of their chunk.
//
// A StepPlan is made by a named schedule, or from the layout's own actions
// (shared/schedule/action_text.h), and the assignment of shared/step/assign.h; by a planner; or
// read from a run's record (shared/step/step_record.h). lower() makes none of these decisions.
#pragma once

#include <string>
#include <vector>

#include "shared/plan/plan.h"
#include "shared/program/work.h"
#include "shared/schedule/action.h"

namespace polyphony {

inline constexpr int kReceiveSlots = 2;  // default

struct StepPlan {
  WorkTable works;
  BatchTotals totals;
  std::vector<Actions> orders;          // the distinct orders
  std::vector<std::uint32_t> order_of;  // by rank: position in orders
  int receive_slots = kReceiveSlots;
  std::vector<std::uint32_t> turns;  // shared/step/turns.h; empty: for a simulator
  Rank only{};  // valid: one rank's part (shared/step/step_part.h): one order, no order_of
  const Actions& actions(Rank rank) const {
    return orders[only.valid() ? 0 : order_of[rank.value]];
  }
  bool operator==(const StepPlan&) const = default;
};

// Returns the StepPlan of a layout: its schedule's orders, or its planner's.
//   Encoders on ranks of their own run forward as far ahead as the language module's first rank
//   requires. Encoders on the language module's ranks follow Layout::encoder_order.
//   Modules that the language module feeds run Schedule::following.
StepPlan make_step_plan(const Scenario& scenario, const Layout& layout, const Plan& plan,
                        const Batch& batch);

// Returns the orders alone, without works.
StepPlan make_orders(const Layout& layout, const Plan& plan);
// Returns the order of one rank. Of the plan, only grids and microbatches are read; stages may be
// absent.
Actions actions_of(const Layout& layout, const Plan& plan, int rank);

// Returns the sets of ranks that compute together and therefore need the same order: the connected
// components of ranks under the cells (tensor, context and expert groups together) of all branches
// that they hold. Ascending.
std::vector<std::vector<Rank>> rank_sets(const Plan& plan);

// Returns the errors in the actions of a step, as text; empty if there are none. Errors are: a rank
// set with two orders; an action on a stage that its rank does not hold, or on a microbatch that
// does not exist; a forward or backward that is missing or repeated; a weight part before its input
// part. Deadlocks (actions that wait for each other) are found by verify() on the Program instead.
std::vector<std::string> check_actions(const Model& model, const Plan& plan, const StepPlan& step);

}  // namespace polyphony
