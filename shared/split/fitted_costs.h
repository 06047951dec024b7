// What works cost the stages of a layout under planner dip (ModuleLayout::stage_costs), as its priced Program
// says: of the typical batch, a curve through the works of each stage (shared/plan/work_curve.h).
//   seconds   ops of an action together, as they take alone; the slowest rank of a cell. Of a backward: what a
//             weight part takes by itself, and what the whole takes longer than that
//   message   of the rows that go on; its gradient takes as long
//   kept      what a backward frees of what its forward made or read. A stage without one keeps what
//             it has made
//   room      what the device has beside the most that is there of all but tapes and boundaries, less 2 %
//   ways      none, selective, full, up to the module's `recompute`, offload where it offloads activations; as
//             the layout says, where that is of some blocks alone
//   weight    what a backward's second part takes, input the rest of the whole backward; nothing where both parts
//             take over 2 % longer, as where a framework hides inner exchanges beside the weights' products
//   moved     of way offload: of what a backward frees, its tape, which is `kept` of the others
//   copy      of that, either way, while all ranks of the node copy
// A folded Program stands for the whole where there is one.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"

namespace polyphony {

// Into the grids of the plan's branches, where they have none.
void fit_stage_costs(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                     Plan& plan);

}  // namespace polyphony
