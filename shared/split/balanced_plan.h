// The plan of a layout on its hardware: stages that `blocks` do not split take as equal a time as
// the profile's times of layers and messages allow; `balance` says of what. Where that does not fit
// in the devices' memory, as shared/screen/stage_memory.h counts it, as equal as those allow that do:
// of each branch, the others being split by time alone. A search lists layouts split by time alone
// (shared/search/); of those that do not fit so the most promising are tried with fitting_split().
#pragma once

#include <optional>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"
#include "shared/screen/bound.h"
#include "shared/work/work_size.h"

namespace polyphony {

// For the scenario's typical batch. Errors: InputError when its data set has not been read.
Plan balanced_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile);
// `typical`: module_sizes() of that batch (shared/cost/layer_costs.h), for who plans many layouts.
Plan balanced_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                   const std::vector<WorkSize>& typical);

// The layout with `blocks` that fit in `room`, as equal as such can be; nothing where none are found, or
// the layout leaves nothing to split. `screen`: of the same scenario and profile.
std::optional<Layout> fitting_split(const Scenario& scenario, const Layout& layout,
                                    const HardwareProfile& profile,
                                    const std::vector<WorkSize>& typical, Bytes room,
                                    Screen& screen);

// By which balanced_plan() splits, but for memory.
Splitting splitting(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                    const std::vector<WorkSize>& typical);

}  // namespace polyphony
