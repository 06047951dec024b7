// Plans a layout on its hardware. Stages that `blocks` do not split are split so that they take as
// equal a time as the profile's times of layers and messages allow; Layout::balance states which
// times count.
//   If that split does not fit in the devices' memory, as shared/screen/stage_memory.h counts it,
//   it is replaced by the most equal one that fits. This is decided for each branch alone, with the
//   other branches split by time.
//
//   A search lists layouts that are split by time alone (shared/search/). Of those that do not fit,
//   the most promising are tried again with fitting_split().
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"
#include "shared/screen/bound.h"
#include "shared/work/work_size.h"

namespace polyphony {

// Returns the plan for the scenario's typical batch. Throws InputError if its data set was not
// read.
Plan balanced_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile);
// Does the same for callers that plan many layouts. `typical` is module_sizes() of the typical
// batch (shared/cost/layer_costs.h).
Plan balanced_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                   const std::vector<WorkSize>& typical);

// Returns the layout with the most equal `blocks` that fit in `room` bytes of memory per rank.
// Nothing if none are found, or if the layout leaves nothing to split. `screen` must be of the same
// scenario and profile.
std::optional<Layout> fitting_split(const Scenario& scenario, const Layout& layout,
                                    const HardwareProfile& profile,
                                    const std::vector<WorkSize>& typical, Bytes room,
                                    Screen& screen);

// Returns Splitting::lacks: the bytes that a rank takes above `room` if one branch is split into
// other blocks and the others as in `quickest`, whose only branch it is if `one_branch`. `screen`
// must outlive it.
std::function<double(ModuleId first, const std::vector<int>& blocks, int stage)> bytes_above(
    Bytes room, const Layout& quickest, bool one_branch, Screen& screen);

// Returns the costs by which balanced_plan() splits, without the check of memory.
Splitting splitting(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                    const std::vector<WorkSize>& typical);

}  // namespace polyphony
