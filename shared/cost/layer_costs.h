// What each layer costs its stage in seconds, for balancing stages (shared/plan/plan.h):
//   forward + backward, recomputation included, of a mean work item on one rank of the module's
//   grid: kernels, host, inner collectives, as the profile prices them.
// Embeddings, heads and projectors are layers too. Frozen modules without a trained one upstream
// have no backward. Not counted: a constant per op, what edges into inner layers add, degraded
// devices, gathers of sharded parameters.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/layers/work_size.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// What a batch holds for each module, by ModuleId.
std::vector<WorkSize> module_sizes(const Model& model, const Batch& batch);

// Needs a legal layout. `sizes`: of the batch that a step trains on.
LayerCosts layer_costs(const Scenario& scenario, const Layout& layout,
                       const std::vector<WorkSize>& sizes, const HardwareProfile& profile);
// Of one module on its grid, of `size` for the whole batch; `cluster` as it should be.
std::vector<Seconds> layer_costs(const Scenario& scenario, ModuleId module,
                                 const ModuleLayout& grid, int microbatches, const WorkSize& size,
                                 const Cluster& cluster, const HardwareProfile& profile);

}  // namespace polyphony
