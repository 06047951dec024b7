// How long one op of the compute stream lasts.
//   compute  overhead + the longer of Σ kernels · correction and the host's launches, layer by layer,
//            + Σ inner collectives in closed form, less what hides them; of a measured layer what
//            was measured (shared/hardware/measured_layers.h), its collectives included
//   update   overhead + bytes of parameters, gradients and moments read and written ÷ memory rate
// On degraded devices as long as on the slowest of its group. Does not model: collectives of other
// ops beside it (shared/cost/cost_model.h adds what those of sharded modules take).
#pragma once

#include "shared/chunk/expand.h"
#include "shared/cost/collectives.h"
#include "shared/hardware/hardware.h"

namespace polyphony {

struct ChunkGroups {
  GroupId tensor, context, expert;
};
// A compute op that does not name its parameters has a tensor-parallel group alone.
ChunkGroups groups_of(const Program& program, const Op& op, const Compute& compute);

// Seconds of one compute op: kernels, dispatch, inner collectives.
Seconds compute_time(const Program& program, OpId op, const Cluster& cluster,
                     const HardwareProfile& profile);

// Of the groups that a chunk's layers use.
struct InnerRings {
  Ring tensor, context, expert;
};

// Of each layer of a range, in order.
std::vector<Seconds> layer_times(const Module& module, LayerRange range, Phase phase,
                                 const WorkSize& size, const ChunkContext& context,
                                 const InnerRings& rings, const HardwareProfile& profile);
// Kernels and inner collectives of a layer range on one rank, without the overhead of an op. Equal
// layers are priced once.
Seconds range_time(const Module& module, LayerRange range, Phase phase, const WorkSize& size,
                   const ChunkContext& context, const InnerRings& rings,
                   const HardwareProfile& profile);

// Bytes that an AdamW update moves per parameter: weight read and written, gradient read, two
// moments read and written; one pass over the gradient for its norm, one to zero it. 16-bit formats
// and smaller: fp32 master weight, gradient and moments, and the weight written once more. What is
// held: shared/chunk/sizes.h. Own count; AdamW: Loshchilov and Hutter, arXiv 1711.05101.
Bytes update_bytes(NumberFormat precision);

}  // namespace polyphony
