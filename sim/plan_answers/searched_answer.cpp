#include "sim/plan_answers/searched_answer.h"

#include <algorithm>

#include "shared/planner/makespan_bound.h"
#include "shared/planner/timetable.h"
#include "shared/step/searched_step.h"

namespace polyphony::sim {

SearchedOrder searched_order(const Scenario& scenario, const Layout& layout, const Plan& plan,
                             const Batch& batch) {
  SearchedOrder found;
  const StepPlan step = make_step_plan(scenario, layout, plan, batch);
  for (const Work& work : step.works.works)
    if (work.branch < plan.language && work.context == 0) {
      ++found.works;
      found.filled += work.samples.begin < work.samples.end ? 1 : 0;
    }
  const LaneGroups groups = lane_groups(plan, step);
  for (const LaneGroup& lanes : groups.groups)
    for (const Actions& actions : orders_of(step, lanes))
      for (const Action& action : actions)
        if (is_forward(action))
          found.forwards[static_cast<std::size_t>(action.recipe)] +=
              static_cast<int>(lanes.lanes[action.branch].size());
  const std::size_t ways = count_ways(plan);
  if (ways == 0) return found;
  for (const LaneGroup& lanes : groups.groups) {
    const auto table =
        timetable(costs_as_run(scenario.model, plan, batch, step, lanes), orders_of(step, lanes));
    if (const auto* times = std::get_if<Timetable>(&table))
      found.believed = std::max(found.believed, times->makespan);
    // The first recompute option is the fastest, and saves the most activations. If there are
    // others that save less, memory does not limit the bound.
    StepCosts quickest = step_costs(scenario.model, plan, batch, step, lanes);
    if (ways > 1) quickest.capacity.clear();
    found.bound = std::max(found.bound, makespan_bound(quickest, true).value());
  }
  return found;
}

}  // namespace polyphony::sim
