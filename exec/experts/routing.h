// Chooses experts for tokens from a router's logits, computes their weights, and the gradients of
// both.
//   l [T, E], in at least fp32; scores s: softmax of l over all experts, or σ(l)
//   choice   the k largest l, ties broken by the lowest index. This equals choosing by s, as long
//            as σ has not been rounded to 1. With groups of experts only those of the chosen groups
//            qualify: the groups with the largest sums of their two largest s, ties broken by the
//            lowest index. With a constant per expert (Module::choice_bias) the choice is by s
//            plus the constant instead of l, also between groups
//   p [T, k] s of the chosen experts divided by their sum (for softmax: the softmax over the
//            chosen l)
//   weights  scale · p
//
// Sources: Mixtral, arXiv 2401.04088, §2.1; DeepSeek-V3, arXiv 2412.19437, §2.1.2.
#pragma once

#include <cstdint>

#include "exec/torch_pch.h"
#include "shared/model/model.h"

namespace polyphony::exec {

// Returns the indices of the k largest logits of each row, in descending order, ties broken by the
// lowest index: [T, E] -> [T, k] int64.
torch::Tensor choose(const torch::Tensor& logits, std::int64_t k);
// As above, with the module's k and groups of experts, and the constants [E] added to the scores;
// undefined: none.
torch::Tensor choose(const torch::Tensor& logits, const Module& module,
                     const torch::Tensor& constants = {});

// Returns what a layer saves of its logits: the softmax over the chosen experts, or their sigmoids;
// [T, k] in both cases.
torch::Tensor chosen_scores(const torch::Tensor& logits, const torch::Tensor& chosen,
                            RouterScores kind);
// Returns the weights [T, k] for these scores.
torch::Tensor routing_weights(const torch::Tensor& scores, const Module& module);
// Returns the gradient of the chosen logits, given that of the weights; all [T, k].
torch::Tensor chosen_gradient(const torch::Tensor& d_weights, const torch::Tensor& scores,
                              const Module& module);

// The scores s divided by their sum, p [T, E]: the probabilities in the balance loss.
struct Probabilities {
  torch::Tensor p, rest;  // rest: 1 − σ(l); undefined for softmax
  // Returns the gradient of the logits, given that of p.
  torch::Tensor gradient(const torch::Tensor& d_p) const;
};
Probabilities probabilities(const torch::Tensor& logits, RouterScores kind);

}  // namespace polyphony::exec
