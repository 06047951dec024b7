// The gated delta rule, in place of attention: the rows of a decoder block read and correct a
// running state, so the amount of computation grows linearly with the length of a sequence.
//   u = W_in x: for every key head [q | k | v of its r value heads | their gates z | their β |
//   their decays a] (shared/chunk/parameters.h)
//   q, k, v: causal convolution per channel, SiLU; q and k normalized to length 1, q ÷ √D
//   for each value head, row by row:
//     S ← α S (I − β k kᵀ) + β v kᵀ,   o = S q,   α = e^(−e^A softplus(a + b)),   β = sigmoid(β)
//   then RMSNorm of o, times SiLU(z), and the output matrix
//
//   Rows are processed kChunk at a time: inside a chunk the corrections of all rows are one
//   triangular system (T in the code), and only the state passes from chunk to chunk. Decays are
//   products of factors of at most 1, computed as sums of logarithms. The rule is computed in at
//   least fp32.
//
//   Each rank has whole key heads. Only u is saved; the backward pass recomputes the rule. Samples
//   do not see each other. Not available with context parallelism, since the state would have to
//   pass through all ranks.
// Sources: Yang et al., Gated Delta Networks, arXiv 2412.06464, §3; chunks: Yang et al., arXiv
// 2406.06484, §3; the convolution, the norms and the gate as in Qwen3-Next's published model code.
#pragma once

#include "exec/frame/frame.h"

namespace polyphony::exec {

// normed [rows, H] -> [rows, H].
torch::Tensor linear_attention(const Frame& frame, const Layer& layer, const torch::Tensor& normed);

}  // namespace polyphony::exec
