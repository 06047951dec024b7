// The plan of a layout on its hardware: stages that `blocks` do not split take as equal a time as
// the profile's times of layers and messages allow; `balance` says of what. Where that does not fit
// in the devices' memory, as shared/screen/stage_memory.h counts it, as equal as those allow that do:
// of each branch, the others being split by time alone. A search goes by time alone
// (shared/search/): what does not fit so counts there as too large.
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

// Between the first ranks of stages. Where gradients return, a microbatch's way down and back holds up
// both: rows the second, gradients the first. Where none do, rows come ahead while stages compute, and hold up
// nobody. Software that waits for them (SoftwareStack::blocking_messages) holds up the first in any case.
HopTimes hop_times(const Cluster& cluster, const HardwareProfile& profile);
// By which balanced_plan() splits, but for memory.
Splitting splitting(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                    const std::vector<WorkSize>& typical);

}  // namespace polyphony
