// The duration of one op of the compute stream.
//   compute  overhead + for each layer: max(Σ kernel time · correction, host launch time)
//            + Σ inner collectives in closed form, minus the part that overlaps with compute. A
//            layer with measured times takes those (shared/hardware/measured_layers.h); they
//            include its collectives
//   update   overhead + bytes of parameters, gradients and moments read and written / memory rate
//
// With degraded devices, an op takes as long as on the slowest device of its group. Not modeled
// here: collectives of other ops that run at the same time (shared/cost/cost_model.h adds the
// slowdown that the collectives of sharded modules cause).
#pragma once

#include "shared/chunk/expand.h"
#include "shared/cost/collectives.h"
#include "shared/hardware/hardware.h"

namespace polyphony {

// The groups of the inner collectives of a chunk; invalid: none.
struct ChunkGroups {
  GroupId tensor, context, expert;
};
// Returns the groups of a compute op. If the op does not name its parameters, only the
// tensor-parallel group is known.
ChunkGroups groups_of(const Program& program, const Op& op, const Compute& compute);

// Returns the duration of one compute or update op: kernels, dispatch and inner collectives.
Seconds compute_time(const Program& program, OpId op, const Cluster& cluster,
                     const HardwareProfile& profile);

// The rings of the groups that a chunk's layers use.
struct InnerRings {
  Ring tensor, context, expert;
};

// Returns the duration of each layer of a range, in order, on one rank.
std::vector<Seconds> layer_times(const Module& module, LayerRange range, Phase phase,
                                 const WorkSize& size, const ChunkContext& context,
                                 const InnerRings& rings, const HardwareProfile& profile);
// Returns the duration of a layer range on one rank: kernels and inner collectives, without the
// overhead of the op. Equal layers are computed once.
Seconds range_time(const Module& module, LayerRange range, Phase phase, const WorkSize& size,
                   const ChunkContext& context, const InnerRings& rings,
                   const HardwareProfile& profile);

// Returns the bytes that an AdamW update moves per parameter: the weight is read and written, the
// gradient read, two moments read and written; one more pass over the gradient computes its norm,
// one sets it to zero. With 16-bit and smaller formats, master weight, gradient and moments are
// fp32, and the weight is written in addition. Memory of the optimizer state: shared/chunk/sizes.h.
// Own count; AdamW: Loshchilov and Hutter, arXiv 1711.05101.
Bytes update_bytes(NumberFormat precision);

}  // namespace polyphony
