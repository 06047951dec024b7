// Why a plan's stages are split where they are.
#pragma once

#include <vector>

#include "shared/plan/plan.h"
#include "sim/plan_answers/plan_answer.h"

namespace polyphony::sim {

// Of the plan's branches of several stages; `layout`: as written, before they were split.
std::vector<PlannedSplit> planned_splits(const Scenario& scenario, const Layout& layout,
                                         const Plan& plan, const Splitting& by,
                                         const HardwareProfile& profile);

}  // namespace polyphony::sim
