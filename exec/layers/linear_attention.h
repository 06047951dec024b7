// The gated delta rule in place of attention: a decoder block's rows read and correct a running
// state, so that work grows with the length of a sequence and not with its square.
//   u = W_in x: of every key head [q | k | v of its r value heads | their gates z | their β | their
//   decays a] (shared/chunk/parameters.h); q, k, v: convolution over the last rows by channel, SiLU;
//   q and k to length 1, q ÷ √D.   Of a value head, row by row:
//     S ← α S (I − β k kᵀ) + β v kᵀ,   o = S q,   α = e^(−e^A softplus(a + b)),   β = sigmoid(β)
//   then RMSNorm of o, times SiLU(z), and the output matrix.
//   Rows are taken kChunk at a time: inside a chunk the corrections of all rows are one triangular
//   system (T below), and only the state goes from chunk to chunk. Decays are products of at most 1,
//   made as sums of logarithms; the rule is computed in fp32 at least.
//   A rank has whole key heads. Kept: u alone; the backward runs the rule again.
//   Samples do not see each other. Not over a context group: a state passes through all ranks.
// Sources: Yang et al., Gated Delta Networks, arXiv 2412.06464, §3; chunks: Yang et al., arXiv
// 2406.06484, §3; the convolution, the norms and the gate as in Qwen3-Next's published model code.
#pragma once

#include "exec/layers/blocks.h"

namespace polyphony::exec {

torch::Tensor linear_attention(const Frame& frame, const Layer& layer, const torch::Tensor& normed);

}  // namespace polyphony::exec
