// Checks a layout's own actions (Layout::actions).
#include <algorithm>

#include "shared/check/checks.h"
#include "shared/planner/equal_costs.h"
#include "shared/planner/timetable.h"
#include "shared/step/step_plan.h"
#include "shared/text/number_text.h"

namespace polyphony::checks {
Verdict check_own_actions(const Scenario& scenario, const Layout& layout) {
  if (layout.actions.empty()) return {};
  const Module& language = scenario.model.modules[language_module(scenario.model).value];
  const ModuleLayout& grid = layout.modules[language_module(scenario.model).value];
  if (layout.actions.size() != static_cast<std::size_t>(grid.pp))
    return refuse("actions lists " + number(layout.actions.size()) + " ranks, but pp is " +
                  std::to_string(grid.pp) + "; give one order per rank along the pipeline");
  int stages = 0;
  for (const Actions& actions : layout.actions)
    for (const Action& action : actions) stages = std::max(stages, action.stage + 1);
  if (stages != grid.pp * grid.vpp)
    return refuse("actions has " + std::to_string(stages) + " stages, but pp·vpp is " +
                  std::to_string(grid.pp * grid.vpp) + "; set vpp, or correct the actions");
  const Plan plan = make_plan(scenario, layout);
  const Branch& branch = plan.branches[plan.language];
  if (language.tied && grid.pp > 1 && branch.rank_of_stage.front() == branch.rank_of_stage.back())
    return refuse(language.name +
                  ": tied embeddings need the first and the last stage on different ranks, but the "
                  "actions place both on one");
  const std::vector<std::string> faults =
      check_actions(scenario.model, plan, make_orders(layout, plan));
  if (!faults.empty())
    return refuse(faults.front() +
                  (faults.size() > 1 ? " (and " + number(faults.size() - 1) + " more)" : ""));
  const auto outcome = timetable(equal_costs(layout.actions, {}, language.name), layout.actions);
  if (const auto* no = std::get_if<Infeasible>(&outcome)) return refuse(no->reason);
  return {};
}

}  // namespace polyphony::checks
