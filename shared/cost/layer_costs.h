// The cost of each layer, from which layers are balanced over stages (shared/plan/plan.h): for one
// average microbatch on one rank of the module's grid.
//   forward    kernels, host and inner collectives, as the profile predicts them
//   backward   the same, of the weight gradients if the module is trained (LoRA: of its low-rank
//              matrices alone), and of the input gradients if a module upstream, over any edge, is
//              trained; plus recomputation, if there is a backward pass at all
//   sent       bytes of the rows that leave the layer
//
// Embeddings, heads and projectors are layers, too. Not included: the overhead per op, edges into
// inner layers, degraded devices, gathers of sharded parameters.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/planner/planner_costs.h"
#include "shared/scenario/scenario.h"
#include "shared/work/work_size.h"

namespace polyphony {

// Returns the size of a batch for each module, by ModuleId.
std::vector<WorkSize> module_sizes(const Model& model, const Batch& batch);

// Returns the cost of all layers of all modules. The layout must be legal. `sizes` are the
// module_sizes() of the global batch.
LayerCosts layer_costs(const Scenario& scenario, const Layout& layout,
                       const std::vector<WorkSize>& sizes, const HardwareProfile& profile);
// Returns the cost of the layers of one module on its grid. `size` is that of the global batch;
// `cluster` must have no degraded ranks.
std::vector<LayerCost> layer_costs(const Scenario& scenario, ModuleId module,
                                   const ModuleLayout& grid, int microbatches, const WorkSize& size,
                                   const Cluster& cluster, const HardwareProfile& profile);

}  // namespace polyphony
