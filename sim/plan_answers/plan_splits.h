// Explains why the stages of a plan are split where they are, by comparison with other splits.
#pragma once

#include <vector>

#include "shared/plan/plan.h"
#include "sim/plan_answers/plan_answer.h"

namespace polyphony::sim {

// Returns one entry per branch of the plan that has several stages. `layout` is the layout as
// written, before stages were split; `by` gives the costs.
std::vector<PlannedSplit> planned_splits(const Scenario& scenario, const Layout& layout,
                                         const Plan& plan, const Splitting& by,
                                         const HardwareProfile& profile);

}  // namespace polyphony::sim
