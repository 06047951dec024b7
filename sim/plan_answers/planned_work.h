// What a layout's planner makes of a batch, but for steps, and how large batches must be for one split of
// ranks over branches to be right for all of them.
#pragma once

#include "shared/plan/plan.h"
#include "sim/plan_answers/plan_answer.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {

// A plan whose branches have item costs (shared/step/planned_step.h).
PlannedWork planned_work(const Scenario& scenario, const Layout& layout, const Plan& plan,
                         const Batch& batch);

// Of the layout without its planner, and with it.
std::vector<MicrobatchWork> microbatch_work(const Plan& plan, const Prediction& unplanned,
                                            const Prediction& planned);

}  // namespace polyphony::sim
