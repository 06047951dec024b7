// The plan of a layout on its hardware: stages that `blocks` do not split take as equal a time as
// the profile's layer times allow.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"

namespace polyphony {

// For the scenario's typical batch. Errors: InputError when its data set has not been read.
Plan balanced_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile);

}  // namespace polyphony
