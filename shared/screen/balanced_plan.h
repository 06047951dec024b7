// The plan of a layout on its hardware: stages that `blocks` do not split take as equal a time as
// the profile's layer times allow.
#pragma once

#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/layers/work_size.h"
#include "shared/plan/plan.h"

namespace polyphony {

// For the scenario's typical batch. Errors: InputError when its data set has not been read.
Plan balanced_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile);
// `typical`: module_sizes() of that batch (shared/cost/layer_costs.h), for who plans many layouts.
Plan balanced_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                   const std::vector<WorkSize>& typical);

}  // namespace polyphony
