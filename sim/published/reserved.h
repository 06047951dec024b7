// What the caching allocator reserves where it does not say what is allocated.
//   Megatron   allocated / 0.94 (SimuMax, docs/strategy.md, mem_factor; its own B200 runs: 66.55 of
//              70.88 GiB)
//   fsdp       allocated, other streams' buffers included (shared/held/stack_sizes.h), and at the loss,
//              where a rank's peak is, free blocks that its logits do not fit in: the temporaries of
//              a block's forward, and the logits as computed, which are gone by then (a fused loss
//              keeps them). Own count, by the rules of PyTorch's c10/cuda/CUDACachingAllocator.cpp.
// Does not model: other fragmentation; blocks given back where the device is full.
#pragma once

#include "sim/prediction/predict.h"
#include "sim/published/case.h"

namespace polyphony::sim {

// The most of any rank.
Bytes reserved_bytes(const PublishedCase& in, const Prediction& prediction);

}  // namespace polyphony::sim
