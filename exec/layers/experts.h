// Mixture of experts: what stands for a decoder block's feed-forward part.
//   x [T, H], router W [E, H], experts gated, of width F: gate_up [E, 2F, H], down [E, H, F]
//   (exec/autograd/glu.h); with Module::expert_bias each has biases
//   l = x Wᵀ, in fp32 at least; a token visits k experts (exec/layers/routing.h)
//   y = Σ_chosen weight · expert(x) + shared(x)          no token is dropped, loads are uneven
//   backward: dl of the chosen through the weights, and the balance term's (exec/layers/balance.h)
// Expert parallelism: rows go to their experts' ranks and back (exec/layers/dispatch.h). Tensor
// parallelism: every rank routes all rows alike and holds its features of each expert; y, dx and
// the gradient of the weights are partial sums over the group. Down's bias is added by the group's
// first rank, while each makes its whole gradient: all rows are there. The sum over a token's choices
// is in the order of their logits, whichever ranks computed them. Inner collectives: expand()'s list
// (shared/layers/experts.h). Sources: Mixtral, arXiv 2401.04088; Qwen3, arXiv 2505.09388; biases:
// openai/gpt-oss; expert parallelism: GShard, arXiv 2006.16668; without dropping: MegaBlocks, arXiv
// 2211.15841.
#pragma once

#include "exec/layers/blocks.h"

namespace polyphony::exec {

torch::Tensor experts(const Frame& frame, const Layer& layer, const torch::Tensor& x);

}  // namespace polyphony::exec
