// Selects the implementation whose memory-bound kernels an expansion counts.
//   plain  expand(): a plain ATen implementation. Software stacks are fitted relative to it
//          (shared/hardware/software.h).
//   own    expand_own(): what exec/ queues on a GPU, with its fused kernels (exec/cuda/), bias and
//          gradient sums, and the tables that an op computes before its first layer
//          (shared/kernels/chunk_tables.h). A library call counts as one launch, whatever it
//          launches inside: a GEMM, attention of all sequences, a sort, a copy.
// GEMMs, attention FLOPs and collectives are the same in both forms.
//
// The own form covers: self-attention without windows, output gates, sinks and context parallelism;
// dense feed-forward parts; experts without biases and groups, each with rows and one GEMM; the
// input and output layers of vision and language modules; MLP projectors; LoRA; tensor and sequence
// parallelism; tensor-parallel chunks; recomputation. Everything else is counted as in the plain
// form. A text-only microbatch is counted as if the model had no encoder. Heads are assumed to be a
// multiple of 8 wide, which attention kernels take without padding.
//
// Source: own count of what exec/ does; tests/exec/queued/layer_counts_test.cpp compares it with a
// device that counts its kernels.
#pragma once

#include "shared/kernels/expansion.h"

namespace polyphony {

enum class KernelForm : std::uint8_t { plain, own };

// Returns the kernels and collectives of a compute op in the own form (see expand(),
// shared/chunk/expand.h).
Expansion expand_own(const Module& module, LayerRange layers, Phase phase, const WorkSize& size,
                     const ChunkContext& context);

}  // namespace polyphony
