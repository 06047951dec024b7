// Bytes that a chunk holds on one rank.
//   T tokens, H hidden, A·D attention width, K·D key (or value) width (t > K: K counts as t), F
//   feed-forward width, t tensor-parallel ranks, e bytes an element; q = T, or under sequence
//   parallelism the rank's own rows ⌈T/t⌉
#pragma once

#include "shared/expand.h"
#include "shared/parameters.h"
#include "shared/plan/plan.h"
#include "shared/program.h"

namespace polyphony {

// What one forward keeps for its backward (the opaque tape), per layer:
//   vision or decoder block   e·(q·4H + T·((2·A·D + 2·K·D)/t + (2 or, gated, 3)·F/t)) + 4·T·A/t
//                             inputs of both norms and of the four matrices, q, k, v, the attention
//                             output (input of the output matrix), the activation's inputs,
//                             log-sum-exp in fp32
//   patch embedding e·q·C·p² · norm e·q·H · projector e·(q·in + T·2·hidden/t) · head
//   e·L·(2H + V/t), L loss rows (2H: of ⌈L/t⌉ under sequence parallelism)
// With full recompute: the chunk's input only. Source: own count of what exec/ saves; compare
// 34·s·b·h bytes of Korthikanti et al., arXiv 2205.05198 §4.1, which includes dropout masks.
Bytes tape_bytes(const Module& module, LayerRange layers, const WorkSize& size,
                 const ChunkContext& context);

// What the backward makes besides, while it runs: the tape of what is recomputed.
Bytes workspace_bytes(const Module& module, LayerRange layers, const WorkSize& size,
                      const ChunkContext& context);
// {x, dy} of every linear layer, when the weight part is an op of its own.
Bytes held_for_weights(const Module& module, LayerRange layers, const WorkSize& size,
                       const ChunkContext& context);

// Rows of a work item that leave the first `end` layers of a module.
std::int64_t rows_leaving(const Module& module, int end, const WorkSize& size);

// Elements of the chunk's parameters on one rank.
struct LocalElements {
  std::int64_t all = 0;
  std::int64_t trained = 0;
  std::int64_t partial = 0;  // that one sum over the tensor-parallel ranks takes (shared heads: of
                             // all heads' keys and values)
};
LocalElements local_elements(const Module& module, LayerRange layers, const ShardIndex& shard,
                             bool sequence_parallel, bool experts);
// All of them, the experts' included.
std::int64_t local_parameters(const Module& module, LayerRange layers, const ShardIndex& shard);

// What a rank holds from step to step of n local parameters, of which `trained` train. fp32 and fp64:
// gradients and two moments in that format. bf16: fp32 gradients, two moments and master weights
// (Rajbhandari et al., arXiv 1910.02054 §3.1: 12 bytes of state a parameter). Divided over `ranks`:
// the state (shard optimizer), the gradients too (gradients), the parameters too (full).
struct HeldBytes {
  Bytes parameters, gradient, optimizer;
};
HeldBytes held_bytes(std::int64_t local, std::int64_t trained, int ranks, Shard shard,
                     NumberFormat precision);
// Of one gradient element: fp32 at least.
Bytes gradient_bytes(NumberFormat precision);

}  // namespace polyphony
