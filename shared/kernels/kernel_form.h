// Which implementation an expansion counts the memory-bound kernels of.
//   plain  expand(): a plain ATen implementation, which software stacks are fitted to (shared/hardware/software.h)
//   own    what exec/ queues on a GPU: its fused kernels (exec/cuda/), bias and gradient sums, and what an op makes of
//          its work before the first layer (shared/kernels/chunk_tables.h). A call of a library is one launch, whatever it
//          launches inside: a product, attention of all sequences, a sort, a copy.
// Products, attention's FLOPs and collectives are those of expand(). Counted so far: self-attention without windows,
// gates of outputs, sinks and context parallelism, dense feed-forward parts, experts (all of which have rows, one product
// each) without biases and groups, the ends of vision and language modules, MLP projectors, LoRA, tensor and sequence
// parallelism, pieces, recomputation; what else a module has is counted as in the plain form, a work of text alone as where no
// encoder is. Heads of a multiple of 8 numbers, as attention kernels take them without padding.
// Source: own count of what exec/ does; tests/exec/queued/layer_counts_test.cpp holds it against a device that counts.
#pragma once

#include "shared/kernels/expansion.h"

namespace polyphony {

enum class KernelForm : std::uint8_t { plain, own };

Expansion expand_own(const Module& module, LayerRange layers, Phase phase, const WorkSize& size,
                     const ChunkContext& context);

}  // namespace polyphony
