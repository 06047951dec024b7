// Evaluates planner dip on a batch: how it divides microbatches, which actions recompute, and how
// close the order that it found is to the lower bound.
#pragma once

#include "shared/plan/plan.h"
#include "sim/plan_answers/plan_answer.h"

namespace polyphony::sim {

// Returns everything but the step times, `unplanned_fits` and `microbatches`. The plan's branches
// must have stage costs (shared/step/searched_step.h).
SearchedOrder searched_order(const Scenario& scenario, const Layout& layout, const Plan& plan,
                             const Batch& batch);

}  // namespace polyphony::sim
