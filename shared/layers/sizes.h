// Bytes that a chunk holds on one rank.
//   T tokens, H hidden, A·D attention width, K·D key (or value) width (t > K: K counts as t), F
//   feed-forward width, t tensor-parallel ranks, e bytes an element; q = T, or under sequence
//   parallelism the rank's own rows ⌈T/t⌉; G = T, or under context parallelism the
//   group's tokens
#pragma once

#include "shared/layers/expand.h"
#include "shared/layers/parameters.h"
#include "shared/layers/rows.h"

namespace polyphony {

// A chunk on one of the tensor-parallel ranks. Under sequence parallelism the first has most rows.
struct RankContext : ChunkContext {
  int tensor_index = 0;
  RankContext(const ChunkContext& context, int tensor_index_ = 0)
      : ChunkContext(context), tensor_index(tensor_index_) {}
};

// What one forward keeps for its backward (the opaque tape), per layer:
//   rows of a norm: w·q for RMSNorm, 2·w·q for LayerNorm (statistics), w bytes: e, 4 at least
//   vision or decoder block   e·(q·4H + T·(2·A·D + (2 or, gated, 3)·F)/t + G·2·K·D/t) + w·T·A/t
//                             and two norms: inputs of both and of the four matrices, q, k, v, the
//                             attention output (input of the output matrix), the activation's
//                             inputs, log-sum-exp
//     frozen                  without inputs of matrices: 2H in place of 4H, F (gated 2F) less
//     LoRA                    4·e·T·r more; a first block that nothing trained feeds has no norm1
//     latent attention        q, k, v: shared/layers/latent_sizes.cpp
//     norms of heads          T·(e·(A·D + 2·K·D)/t + w·(A + K)/t): q, k, v before them, scales
//     with experts            in place of 3·F: S = T·k slots (token, choice), X width of an expert,
//                             t' ranks that cut it, S rows at the experts here (an even load):
//                             e·S·(2H + 3·X/t') + w·S + 32·S (with ep > 1 48·S): rows at the
//                             experts and what they answered, the activation's inputs, weights,
//                             indices; with a balance term w·q·E logits; shared e·T·3·F_shared/t.
//                             Experts uncut (t' = 1): q in place of T. Frozen: H and 2·X
//   diffusion block           a block of LayerNorms with e·q·2H, the branches behind gates (when
//                             these train), and the modulation of n items; across, to C rows of
//                             width W: shared/layers/diffusion_sizes.cpp
//   latent embedding, diffusion head   there, too
//   audio embedding           e·q·6(bins + H): rows of 3 frames for 2q and q outputs, as many
//                             activation inputs; frozen 0
//   encoder norm              e·q·H, a norm
//   projector                 e·(q·in + T·2·hidden/t), linear e·q·in; frozen e·T·hidden/t, 0
//   head                      e·L·2H (of ⌈L/t⌉ rows under sequence parallelism; frozen and LoRA
//                             H), a norm, w·L·V/t probabilities; L loss rows
//   a diffusion chunk with blocks      e·C·W, what they read
// Recomputed blocks: full, the input e·q·H only, and the choice of experts, 8·S; selective, without
// the attention output and the log-sum-exp.
// Not counted: what belongs to the batch (patches, frames, token ids, labels, positions), which the
// loader holds all step; indices and tables by row, once per chunk and not per layer (rotary
// tables, orders of rows, masks: some 2·D·w + 32 bytes a row); token and patch embeddings' nothing.
// Source: own count of what exec/ keeps, equal to the byte in tests/exec/layers/tape_test.cpp; compare
// 34·s·b·h bytes of Korthikanti et al., arXiv 2205.05198 §4.1, which includes dropout masks.
Bytes tape_bytes(const Module& module, LayerRange layers, const WorkSize& size,
                 const RankContext& context);
// Of it, the chunk's inputs: the same memory as the boundary buffers that they arrived in, which
// stay until the backward.
Bytes input_in_tape(const Module& module, LayerRange layers, const WorkSize& size,
                    const RankContext& context);

// What the backward makes besides, while it runs: the tape of what is recomputed, one block at a
// time.
Bytes workspace_bytes(const Module& module, LayerRange layers, const WorkSize& size,
                      const RankContext& context);
// When the weight part is an op of its own: {x, dy} of every layer that trains, matrices and norms
// (shared/layers/weight_sizes.cpp); and what of it is in the tape already, besides the chunk's input.
Bytes kept_for_weights(const Module& module, LayerRange layers, const WorkSize& size,
                       const RankContext& context);
Bytes held_for_weights(const Module& module, LayerRange layers, const WorkSize& size,
                       const RankContext& context);

// Of it, what a diffusion layer keeps beyond the common part of a block.
std::int64_t diffusion_bytes(const Module& module, LayerKind layer, const WorkSize& size,
                             const RankContext& context);

// What latent attention keeps up to the heads' queries, keys and values; and the rows, over its
// matrices, of the inputs of low-rank pairs' second matrices (shared/layers/latent_sizes.cpp).
std::int64_t latent_bytes(const Module& module, const WorkSize& size, const RankContext& context);
std::int64_t latent_pair_rows(const Module& module, const WorkSize& size,
                              const RankContext& context);

// And what its first block does not keep when nothing trained feeds it: its first norm's, and when
// frozen its second's.
std::int64_t unmodulated_bytes(const Module& module, const WorkSize& size,
                               const RankContext& context);

// Elements of the chunk's parameters on one rank.
// All of them, the experts' included.
std::int64_t local_parameters(const Module& module, LayerRange layers, const ShardIndex& shard);

}  // namespace polyphony
