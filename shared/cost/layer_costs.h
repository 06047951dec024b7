// What each layer costs its stage, for balancing stages (shared/plan/plan.h), of a mean work item on
// one rank of the module's grid:
//   forward    kernels, host, inner collectives, as the profile prices them
//   backward   the same of weight gradients where the module is trained (of LoRA its pairs alone), of
//              input gradients where something strictly upstream is, over any edge of the model; and
//              recomputation where there is a backward at all
//   sent       bytes of the rows that leave it
// Embeddings, heads and projectors are layers too. Not counted: a constant per op, what edges into inner layers add, degraded
// devices, gathers of sharded parameters.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"
#include "shared/work/work_size.h"

namespace polyphony {

// What a batch holds for each module, by ModuleId.
std::vector<WorkSize> module_sizes(const Model& model, const Batch& batch);

// Needs a legal layout. `sizes`: of the batch that a step trains on.
LayerCosts layer_costs(const Scenario& scenario, const Layout& layout,
                       const std::vector<WorkSize>& sizes, const HardwareProfile& profile);
// Of one module on its grid, of `size` for the whole batch; `cluster` as it should be.
std::vector<LayerCost> layer_costs(const Scenario& scenario, ModuleId module,
                                   const ModuleLayout& grid, int microbatches, const WorkSize& size,
                                   const Cluster& cluster, const HardwareProfile& profile);

}  // namespace polyphony
