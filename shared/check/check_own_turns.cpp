// A layout's own turns (Layout::turns).
#include <algorithm>

#include "shared/check/checks.h"
#include "shared/planner/equal_costs.h"
#include "shared/planner/timetable.h"
#include "shared/step/step_plan.h"

namespace polyphony::checks {
namespace {

std::string number(std::size_t value) { return std::to_string(value); }

}  // namespace

Verdict check_own_turns(const Scenario& scenario, const Layout& layout) {
  if (layout.turns.empty()) return {};
  const Module& language = scenario.model.modules[language_module(scenario.model).value];
  const ModuleLayout& grid = layout.modules[language_module(scenario.model).value];
  if (layout.turns.size() != static_cast<std::size_t>(grid.pp))
    return refuse("turns of " + number(layout.turns.size()) + " ranks, but pp is " +
                  std::to_string(grid.pp) + "; one order a rank along the pipeline");
  int stages = 0;
  for (const Turns& turns : layout.turns)
    for (const Turn& turn : turns) stages = std::max(stages, turn.stage + 1);
  if (stages != grid.pp * grid.vpp)
    return refuse("turns of " + std::to_string(stages) + " stages, but pp·vpp is " +
                  std::to_string(grid.pp * grid.vpp) + "; set vpp, or mend the turns");
  const Plan plan = make_plan(scenario, layout);
  const Branch& branch = plan.branches[plan.language];
  if (language.tied && grid.pp > 1 && branch.rank_of_stage.front() == branch.rank_of_stage.back())
    return refuse(language.name +
                  ": tied embeddings lie on two ranks, the turns have both ends of "
                  "the pipeline on one");
  const std::vector<std::string> faults =
      check_turns(scenario.model, plan, make_orders(layout, plan));
  if (!faults.empty())
    return refuse(faults.front() +
                  (faults.size() > 1 ? " (and " + number(faults.size() - 1) + " more)" : ""));
  const auto outcome = timetable(equal_costs(layout.turns, {}, language.name), layout.turns);
  if (const auto* no = std::get_if<Infeasible>(&outcome)) return refuse(no->reason);
  return {};
}

}  // namespace polyphony::checks
