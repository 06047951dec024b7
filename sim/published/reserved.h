// Memory reserved by PyTorch's caching allocator, for published rows that give reserved and not
// allocated memory.
//   Megatron   allocated / 0.94 (SimuMax, docs/strategy.md, mem_factor; its own B200 runs: 66.55 of
//              70.88 GiB)
//   fsdp       allocated memory, including buffers of other streams (shared/held/stack_sizes.h),
//              plus free blocks at the loss, where a rank has its peak. These are blocks too small
//              to be reused for the logits in the loss: the temporaries of a block's forward, and
//              the logits as computed, which are freed by then (with a fused loss they are still
//              allocated). Our own count, by the rules of c10/cuda/CUDACachingAllocator.cpp.
// Does not model: other fragmentation; blocks that are returned when the device is full.
#pragma once

#include "sim/prediction/predict.h"
#include "sim/published/case.h"

namespace polyphony::sim {

// Returns the largest reserved memory of any rank.
Bytes reserved_bytes(const PublishedCase& in, const Prediction& prediction);

}  // namespace polyphony::sim
