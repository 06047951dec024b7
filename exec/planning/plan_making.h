// A plan for one batch while others train: made within time, and whether it can run.
#pragma once

#include <functional>
#include <string>

#include "exec/planning/live_plans.h"

namespace polyphony::exec {

// As make_step_plan(), but that a search ends when it is told to.
StepPlan plan_until(const PlannedRun& run, const Batch& batch, const std::function<bool()>& stop);

// Why a plan cannot run: what verify() finds first in the Program of all ranks, or too little memory. Empty: it
// can, or has too many ranks to tell (kProveWhole).
std::string refusal_of(const PlannedRun& run, const StepPlan& step, const Batch& batch,
                       const TooLarge& too_large);

}  // namespace polyphony::exec
