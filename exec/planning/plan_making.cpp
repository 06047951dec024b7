#include "exec/planning/plan_making.h"

#include "shared/lower/lower.h"
#include "shared/step/assign.h"
#include "shared/step/searched_step.h"
#include "shared/verify/verify.h"

namespace polyphony::exec {

StepPlan plan_until(const PlannedRun& run, const Batch& batch, const std::function<bool()>& stop) {
  if (run.layout.planner != Planning::dip)
    return make_step_plan(run.scenario, run.layout, run.plan, batch);
  StepPlan step = make_orders(run.layout, run.plan);
  step.works = assign_work(run.scenario.model, run.plan, batch);
  step.totals = totals_of(batch);
  search_orders(run.scenario.model, run.plan, batch,
                {.placements = run.layout.placements, .stop = stop}, step);
  return step;
}

std::string refusal_of(const PlannedRun& run, const StepPlan& step, const Batch& batch,
                       const TooLarge& too_large) {
  if (world_size(run.layout) > kProveWhole) return "";
  const Program program = lower(run.scenario, run.layout, run.plan, step, batch);
  const std::vector<Fault> faults = verify(program, 1);
  if (!faults.empty()) return faults.front().text;
  return too_large ? too_large(program) : "";
}

}  // namespace polyphony::exec
