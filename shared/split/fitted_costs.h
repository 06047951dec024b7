// Fits ModuleCosts::stages: the cost of a microbatch on each stage of a layout, by which
// planner dip orders actions. The layout is lowered and priced for the typical batch, and a curve
// is fitted through the microbatches of each stage (shared/plan/work_curve.h).
//   forward, input, weight (seconds)
//             The ops of an action, added up without contention, on the slowest rank of a cell. Of
//             a backward, `weight` is the time of its second part (weight gradients), and `input`
//             is the rest of the whole backward. `weight` is zero if both parts together take over
//             2 % longer than the whole, as they do where a framework overlaps inner communication
//             with the GEMMs of weight gradients.
//   message (seconds)
//             The rows sent to the next stage. Their gradients take as long.
//   kept (bytes)
//             What a backward frees of what its forward made or read. For a stage without a
//             backward, what it has made.
//   moved (bytes), copy (seconds)
//             For offloading: the saved activations, which the other options count as `kept`, and
//             the time of one copy while all ranks of the node copy.
//   room (bytes)
//             The device memory, less the peak of everything except saved activations and rows at
//             boundaries, less 2 %.
//   ways      One entry per recipe (activation policy): none, selective, full, up to the module's
//             `recompute`; offload if the module offloads activations. One entry, the layout's own,
//             if that applies to some blocks only.
// The folded Program is used instead of the whole one where the layout folds.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"

namespace polyphony {

// Writes stage costs into the plan's branches that have none.
void fit_stage_costs(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                     Plan& plan);

}  // namespace polyphony
