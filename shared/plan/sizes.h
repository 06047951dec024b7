// Bytes that a chunk holds on one rank.
//   T tokens, H hidden, A·D attention width, K·D key (or value) width (t > K: K counts as t), F
//   feed-forward width, t tensor-parallel ranks, e bytes an element; q = T, or under sequence
//   parallelism the rank's own rows ⌈T/t⌉; G = T, or under context parallelism the
//   group's tokens
#pragma once

#include "shared/expand.h"
#include "shared/parameters.h"
#include "shared/program.h"
#include "shared/rows.h"

namespace polyphony {

// What one forward keeps for its backward (the opaque tape), per layer:
//   vision or decoder block   e·(q·4H + T·(2·A·D + (2 or, gated, 3)·F)/t + G·2·K·D/t) + 4·T·A/t
//                             inputs of both norms and of the four matrices, q, k, v, the attention
//                             output (input of the output matrix), the activation's inputs,
//                             log-sum-exp in fp32
//     with experts            in place of 3·F: S = T·k slots (token, choice), X width of an expert,
//     t'
//                             ranks that cut it, w bytes of a router logit (e, 4 at least), S rows
//                             at the experts here (an even load): e·S·(2H + 3·X/t') + w·S + 32·S
//                             (with ep > 1 48·S) rows at the experts and what they answered,
//                             activation's inputs, weights, and indices; with a balance term w·q·E
//                             logits; shared e·T·3·F_shared/t. With experts uncut (t' = 1) q in
//                             place of T
//   diffusion block           the same, and e·q·2H: the branches behind gates (when these train);
//                             e·n·(8H + 2R): modulation of n items; across, to C rows of width W:
//                             e·(q·2H + T·3·A·D/t + C·2·A·D/t) + 4·T·A/t: inputs of norm and query,
//                             q, the attention output and its rows, k and v, log-sum-exp
//   diffusion chunk e·C·W · latent embedding e·q·p, p features of a patch · diffusion head
//   e·q·2H + e·n·(4H + 2R) + (e or, less, 4)·q·p
//   norms of heads            + T·(e·(A·D + 2·K·D)/t + 4·(A + K)/t): q, k, v before them, a scale a
//                             head (wide formats: e each)
//   patch embedding e·q·C·p² · audio embedding e·q·6(bins + H): rows of 3 frames for 2q and q
//   outputs, as many activation inputs · norm e·q·H
//   projector e·(q·in + T·2·hidden/t), linear e·q·in · head e·L·(2H + V/t), L loss rows (2H: of
//   ⌈L/t⌉ under sequence parallelism) LoRA: a block + 4·e·T·r (across + e·(2·T + C)·r); patch and
//   audio embedding 0, head e·L·(H + V/t): inputs of frozen matrices go
// Recomputed blocks: full, the input e·q·H only, and the choice of experts, 8·S; selective, without
// the attention output and the log-sum-exp. Source: own count of what exec/ saves; compare
// 34·s·b·h bytes of Korthikanti et al., arXiv 2205.05198 §4.1, which includes dropout masks.
Bytes tape_bytes(const Module& module, LayerRange layers, const WorkSize& size,
                 const ChunkContext& context);

// What the backward makes besides, while it runs: the tape of what is recomputed, one block at a
// time; of attention alone also its rotated q, k and v.
Bytes workspace_bytes(const Module& module, LayerRange layers, const WorkSize& size,
                      const ChunkContext& context);
// {x, dy} of every linear layer, when the weight part is an op of its own.
Bytes held_for_weights(const Module& module, LayerRange layers, const WorkSize& size,
                       const ChunkContext& context);

// Of it, what a diffusion layer keeps beyond the common part of a block.
std::int64_t diffusion_bytes(const Module& module, LayerKind layer, const WorkSize& size,
                             const ChunkContext& context);

// Elements of the chunk's parameters on one rank.
// All of them, the experts' included.
std::int64_t local_parameters(const Module& module, LayerRange layers, const ShardIndex& shard);

}  // namespace polyphony
