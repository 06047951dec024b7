// Mixture of experts: replaces the feed-forward part of a decoder block.
//   x [T, H], router W [E, H], gated experts of width F: gate_up [E, 2F, H], down [E, H, F]
//   (exec/autograd/glu.h); with Module::expert_bias each has biases
//   l = x Wᵀ, in at least fp32; a token is routed to k experts (exec/experts/routing.h)
//   y = Σ_chosen weight · expert(x) + shared(x)      no token is dropped, so loads are uneven;
//                                                    shared(x) may be gated (shared_gate.h)
//   backward: dl of the chosen experts through the weights, plus the gradient of the balance loss
//   (exec/experts/balance.h)
//
// Expert parallelism: rows travel to the ranks of their experts and back (exec/experts/dispatch.h).
//
// Tensor parallelism: every rank routes all rows identically and holds a share of each expert's
// features; y, dx and the gradient of the weights are partial sums over the group. The bias of
// `down` is added by the group's first rank only, but each rank computes its whole gradient, since
// each has all rows. A token's results are summed in the order of their logits, whichever ranks
// computed them.
//
// Inner collectives: the list of expand() (shared/layers/experts.h).
// Sources: Mixtral, arXiv 2401.04088; Qwen3, arXiv 2505.09388; biases: openai/gpt-oss; expert
// parallelism: GShard, arXiv 2006.16668; no dropping: MegaBlocks, arXiv 2211.15841.
#pragma once

#include "exec/frame/frame.h"

namespace polyphony::exec {

// Returns y [T, H].
torch::Tensor experts(const Frame& frame, const Layer& layer, const torch::Tensor& x);

}  // namespace polyphony::exec
