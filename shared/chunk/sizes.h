// Bytes that a chunk holds on one rank.
//   T tokens, H hidden, A·D attention width, K·D key (or value) width (t > K: K counts as t), F
//   feed-forward width, t tensor-parallel ranks, e bytes an element; q = T, or under sequence
//   parallelism the rank's own rows ⌈T/t⌉; G = T, or under context parallelism the
//   group's tokens
#pragma once

#include "shared/kernels/expansion.h"
#include "shared/kernels/parameter.h"
#include "shared/work/rows.h"

namespace polyphony {

// What one forward keeps for its backward (the opaque tape): the sum over its layers, whose bytes stand
// with their kinds (shared/layers/block.h and the other file pairs that shared/layers/layer_table.cpp
// names), and of a diffusion chunk with blocks e·C·W, what they read across. Everywhere
//   a norm's statistics   w·q for RMSNorm, 2·w·q for LayerNorm, w bytes: e, 4 at least
//   inputs of matrices    where these train; of a LoRA module, where a pair stands beside
// Not counted: what belongs to the batch (patches, frames, token ids, labels, positions), which the
// loader holds all step; indices and tables by row, once per chunk and not per layer (rotary
// tables, orders of rows, masks: some 2·D·w + 32 bytes a row).
// Source: own count of what exec/ keeps, equal to the byte in tests/exec/layers/tape_test.cpp; compare
// 34·s·b·h bytes of Korthikanti et al., arXiv 2205.05198 §4.1, which includes dropout masks.
Bytes tape_bytes(const Module& module, LayerRange layers, const WorkSize& size,
                 const RankContext& context);
// Of it, the chunk's inputs: the same memory as the boundary buffers that they arrived in, which
// stay until the backward.
Bytes input_in_tape(const Module& module, LayerRange layers, const WorkSize& size,
                    const RankContext& context);

// Of it, what blocks read across: once for all of a chunk, gathered (padded) under sequence
// parallelism. And of held_for_weights(), where a matrix that reads it trains.
Bytes conditioning_in_tape(const Module& module, LayerRange layers, const WorkSize& size,
                           const RankContext& context);
Bytes conditioning_for_weights(const Module& module, LayerRange layers, const WorkSize& size,
                               const RankContext& context);

// What the backward makes besides, while it runs: the tape of what is recomputed, and keys that are
// brought again (ModuleLayout::cp_heads), one block at a time.
Bytes workspace_bytes(const Module& module, LayerRange layers, const WorkSize& size,
                      const RankContext& context);
// When the weight part is an op of its own: {x, dy} of every layer that trains
// (shared/chunk/weight_sizes.cpp); and the most that the input part makes of it in one layer, beside
// what the forward kept. What layers have made takes the place of what these have freed of the tape.
Bytes held_for_weights(const Module& module, LayerRange layers, const WorkSize& size,
                       const RankContext& context);
Bytes made_for_weights(const Module& module, LayerRange layers, const WorkSize& size,
                       const RankContext& context);

// Elements of the chunk's parameters on one rank.
// All of them, the experts' included.
std::int64_t local_parameters(const Module& module, LayerRange layers, const ShardIndex& shard);

}  // namespace polyphony
