// What planner dip makes of a batch: into what it cuts microbatches, what actions recompute, how near the order
// that it found is to what no order goes below.
#pragma once

#include "shared/plan/plan.h"
#include "sim/plan_answers/plan_answer.h"

namespace polyphony::sim {

// A plan whose branches have stage costs (shared/step/searched_step.h), but for estimates.
SearchedOrder searched_order(const Scenario& scenario, const Layout& layout, const Plan& plan,
                             const Batch& batch);

}  // namespace polyphony::sim
