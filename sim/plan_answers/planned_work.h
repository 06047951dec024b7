// Evaluates planner entrain on a batch: how evenly it distributes work over microbatches, and how
// large batches must be for one division of ranks among branches to suit all of them.
#pragma once

#include "shared/plan/plan.h"
#include "sim/plan_answers/plan_answer.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {

// Returns everything but the step times and `microbatches`. The plan's branches must have item
// costs (shared/step/planned_step.h).
PlannedWork planned_work(const Scenario& scenario, const Layout& layout, const Plan& plan,
                         const Batch& batch);

// Returns the compute time of every microbatch, from predictions without the planner and with it.
std::vector<MicrobatchWork> microbatch_work(const Plan& plan, const Prediction& unplanned,
                                            const Prediction& planned);

}  // namespace polyphony::sim
