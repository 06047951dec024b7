// Makes the plan of one batch while earlier steps train, within a time limit, and checks that it
// can run.
#pragma once

#include <functional>
#include <string>

#include "exec/planning/live_plans.h"

namespace polyphony::exec {

// Returns make_step_plan(), but the search of planner dip ends when `stop` returns true.
StepPlan plan_until(const PlannedRun& run, const Batch& batch, const std::function<bool()>& stop);

// Returns why a plan cannot run: tasks that wait for each other in a cycle, the first finding of
// verify() in the Program of all ranks, a deadlock of device queues (find_queue_deadlock()), or too
// little memory. Empty if it can run, or if there are too many ranks to check (kProveWhole).
std::string refusal_of(const PlannedRun& run, const StepPlan& step, const Batch& batch,
                       const TooLarge& too_large);

}  // namespace polyphony::exec
