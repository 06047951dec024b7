#include "exec/planning/plan_making.h"

#include "shared/error.h"
#include "shared/lower/lower.h"
#include "shared/program/queue_order.h"
#include "shared/step/assign.h"
#include "shared/step/searched_step.h"
#include "shared/step/turns.h"
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
  StepPlan queued = step;
  try {
    queued.turns = make_turns(run.scenario.model, run.plan, step, batch);
  } catch (const InternalError& error) {
    return error.what();  // its tasks come after each other
  }
  const Program program = lower(run.scenario, run.layout, run.plan, queued, batch);
  const std::vector<Fault> faults = verify(program, 1);
  if (!faults.empty()) return faults.front().text;
  if (std::string stuck = find_queue_deadlock(program); !stuck.empty()) return stuck;
  return too_large ? too_large(program) : "";
}

}  // namespace polyphony::exec
