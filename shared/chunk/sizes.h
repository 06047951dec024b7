// Bytes of the activations that a chunk keeps on one rank, from a forward pass to its backward pass
// and while the backward pass runs.
//   Symbols: T tokens, H hidden, A·D attention width, K·D key (or value) width (if t > K, K counts
//   as t), F feed-forward width, t tensor-parallel ranks, e bytes per element; q = T, or under
//   sequence parallelism the rank's own rows ⌈T/t⌉; G = T, or under context parallelism the group's
//   tokens.
#pragma once

#include "shared/kernels/expansion.h"
#include "shared/kernels/parameter.h"
#include "shared/work/rows.h"

namespace polyphony {

// Returns the saved activations of one forward pass: the sum over its layers, whose formulas are in
// the headers of the layer kinds (shared/layers/block.h and the others that layer_table.cpp
// includes). A diffusion chunk with blocks adds e·C·W for its conditioning rows. For all layers:
//   norm statistics    w·q for RMSNorm, 2·w·q for LayerNorm; w = max(e, 4) bytes
//   inputs of GEMMs    saved if the weight trains or, in a LoRA module, has a low-rank pair
//
// Not counted: data of the batch (patches, frames, token ids, labels, positions), which the loader
// keeps for the whole step; indices and tables per row that exist once per chunk, not per layer
// (rotary tables, row orders, masks: about 2·D·w + 32 bytes per row).
//
// Source: own count of what exec/ keeps; tests/exec/chunk/tape_test.cpp checks it to the byte.
// Compare the 34·s·b·h bytes of Korthikanti et al., arXiv 2205.05198 §4.1, with dropout masks.
Bytes tape_bytes(const Module& module, LayerRange layers, const WorkSize& size,
                 const RankContext& context);
// Returns the part of tape_bytes() that is the chunk's input. It is the same memory as the boundary
// buffer in which the input arrived and which stays until the backward pass.
Bytes input_in_tape(const Module& module, LayerRange layers, const WorkSize& size,
                    const RankContext& context);

// Return the part of tape_bytes(), and of held_for_weights() (0 for a frozen module), that is the
// conditioning of a diffusion chunk. It is kept once per chunk, and gathered (with padding) under
// sequence parallelism.
Bytes conditioning_in_tape(const Module& module, LayerRange layers, const WorkSize& size,
                           const RankContext& context);
Bytes conditioning_for_weights(const Module& module, LayerRange layers, const WorkSize& size,
                               const RankContext& context);

// Returns the extra bytes while the backward pass runs: recomputed activations, and keys and values
// received again from other ranks (ring attention, ModuleLayout::cp_heads). The largest block
// counts, as blocks run one at a time.
Bytes workspace_bytes(const Module& module, LayerRange layers, const WorkSize& size,
                      const RankContext& context);
// For schedules that run weight gradients as a separate op. held_for_weights() returns the bytes
// kept from the input-gradient op to the weight-gradient op: input and output gradient of every
// layer that trains (shared/chunk/weight_sizes.cpp). made_for_weights() returns the largest part of
// it that the input-gradient op allocates in one layer, in addition to the saved activations; what
// finished layers allocated replaces the activations that they freed.
Bytes held_for_weights(const Module& module, LayerRange layers, const WorkSize& size,
                       const RankContext& context);
Bytes made_for_weights(const Module& module, LayerRange layers, const WorkSize& size,
                       const RankContext& context);

// Returns the number of elements of all parameters of the chunk on one rank, experts included.
std::int64_t local_parameters(const Module& module, LayerRange layers, const ShardIndex& shard);

}  // namespace polyphony
