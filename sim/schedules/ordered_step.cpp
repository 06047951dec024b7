#include "sim/schedules/ordered_step.h"

#include <cmath>

#include "shared/error.h"
#include "shared/lower/lower.h"
#include "shared/planner/equal_costs.h"
#include "shared/planner/timetable.h"
#include "shared/schedule/action_text.h"
#include "shared/schedule/orders.h"
#include "shared/split/planned_layout.h"
#include "shared/verify/verify.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

std::vector<OrderedRank> ranks_of(const Plan& plan, const StepPlan& step,
                                  const Prediction& prediction) {
  const Branch& branch = plan.branches[plan.language];
  std::vector<OrderedRank> ranks;
  for (int p = 0; p < branch.grid.pp; ++p) {
    const Rank rank = branch.grid.rank_at(0, 0, 0, p);
    OrderedRank row{"", step.actions(rank).size(),
                    tapes_in_flight(step.actions(rank), static_cast<int>(plan.language)),
                    prediction.memory[rank.value].peak};
    for (std::size_t s = 0; s < branch.stages.size(); ++s)
      if (branch.rank_of_stage[s] == p)
        row.stages += (row.stages.empty() ? "" : " ") + std::to_string(s);
    ranks.push_back(row);
  }
  return ranks;
}

// The actions of the language module's pipeline alone.
std::vector<Actions> pipeline_orders(const Plan& plan, const StepPlan& step) {
  const ModuleLayout& grid = plan.branches[plan.language].grid;
  std::vector<Actions> orders;
  for (int p = 0; p < grid.pp; ++p) {
    orders.emplace_back();
    for (Action action : step.actions(grid.rank_at(0, 0, 0, p))) {
      if (action.branch != plan.language) continue;
      action.branch = 0;
      orders.back().push_back(action);
    }
  }
  return orders;
}

// Returns when each action runs if actions of a kind take equally long.
std::variant<Timetable, Infeasible> unit_timetable(const std::vector<Actions>& orders,
                                                   const ActionLengths& lengths) {
  return timetable(equal_costs(orders, lengths), orders);
}

}  // namespace

std::variant<OrderedStep, IllegalOrder, Infeasible> order_step(const Scenario& scenario,
                                                               const Layout& layout,
                                                               const Batch& batch,
                                                               const HardwareProfile& profile) {
  const PlannedLayout planned = plan_layout(borrow_inputs(scenario, profile), layout);
  const Plan& plan = planned.plan;
  const StepPlan step = make_step_plan(scenario, planned.resolved, plan, batch);
  Program program =
      lower(scenario, planned.resolved, plan, step, batch, StepKind::train, profile.stack);
  if (const auto faults = verify(program); !faults.empty()) {
    std::string all;
    for (const Fault& fault : faults)
      all += (all.empty() ? "" : "; ") + std::string(name(fault.kind)) + ": " + fault.text;
    return IllegalOrder{all};
  }
  auto outcome = predict(std::move(program), scenario, profile, Predictor::simulate);
  if (auto* no = std::get_if<Infeasible>(&outcome)) return std::move(*no);
  OrderedStep answer;
  answer.layout = describe(scenario.model, layout);
  answer.words = layout_words(scenario.model, layout, scenario.cluster);
  answer.prediction = std::get<Prediction>(std::move(outcome));
  answer.figures = figures(scenario, answer.prediction);
  answer.orders = pipeline_orders(plan, step);
  const auto units = unit_timetable(answer.orders, {});
  if (const auto* no = std::get_if<Infeasible>(&units)) return IllegalOrder{no->reason};
  answer.bubble = std::lround(longest_rest(std::get<Timetable>(units)).count());
  answer.ranks = ranks_of(plan, step, answer.prediction);
  return answer;
}

std::string columns_csv(const std::vector<Actions>& orders) {
  const auto units = unit_timetable(orders, {Seconds(1), Seconds(1), Seconds(1), Seconds(1)});
  POLYPHONY_CHECK(std::holds_alternative<Timetable>(units), "the orders can run");
  std::vector<std::vector<int>> columns;
  for (const std::vector<TimedAction>& rank : std::get<Timetable>(units).ranks) {
    columns.emplace_back();
    for (const TimedAction& timed : rank)
      columns.back().push_back(static_cast<int>(std::lround(timed.start.count())));
  }
  return csv_text(orders, columns);
}

}  // namespace polyphony::sim
