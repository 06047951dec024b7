// StepPlan: what one step does, between Plan (which layers are where) and Program (every op).
//   Who: which samples, items and rows each work item holds (WorkTable). Index numbers mean nothing
//     across branches: a language work needs those encoder works that hold its items.
//   When: the actions of every rank (shared/schedule/action.h). The ranks of a rank set have one order,
//     that of all branches they carry.
//   How: how many messages are received ahead of the action that reads them, counted in turns of their
//     chunk.
// A named schedule and the assignment of shared/step/assign.h make a StepPlan; so may a planner, or a
// person's file (shared/plan/step_plan_text.h). lower() decides none of it.
#pragma once

#include <string>
#include <vector>

#include "shared/plan/plan.h"
#include "shared/program/work.h"
#include "shared/schedule/action.h"

namespace polyphony {

inline constexpr int kReceiveSlots = 2;  // unless a plan says otherwise

struct StepPlan {
  WorkTable works;
  BatchTotals totals;
  std::vector<Actions> orders;          // different ones
  std::vector<std::uint32_t> order_of;  // by rank: position in orders
  int receive_slots = kReceiveSlots;
  Rank only{};  // valid: that rank's part (shared/step/step_part.h), with one order and no order_of
  const Actions& actions(Rank rank) const {
    return orders[only.valid() ? 0 : order_of[rank.value]];
  }
  bool operator==(const StepPlan&) const = default;
};

// The layout's own: its schedule's orders.
//   Encoders with ranks of their own run as far ahead as the language module's first rank asks.
//   Encoders on the language module's ranks: as Layout::encoder_order says. What the language module
//   feeds runs Schedule::following.
StepPlan make_step_plan(const Scenario& scenario, const Layout& layout, const Plan& plan,
                        const Batch& batch);

// Without works.
StepPlan make_orders(const Layout& layout, const Plan& plan);
// Of one rank of a plan whose stages are not looked at: grids and works are enough.
Actions actions_of(const Layout& layout, const Plan& plan, int rank);

// Connected components of ranks under the cells (tensor, context and expert groups together) of all
// branches that they carry: ranks that compute together, so that they need one order. Ascending.
std::vector<std::vector<Rank>> rank_sets(const Plan& plan);

// What is wrong with the actions, by name: a rank set with two orders; an action of a stage that its rank
// does not hold, of a work that there is not; a forward or backward lost or doubled, a weight part
// before its input part. Empty: nothing. Not actions that wait for each other: verify(), of the Program.
std::vector<std::string> check_actions(const Model& model, const Plan& plan, const StepPlan& step);

}  // namespace polyphony
