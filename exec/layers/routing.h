// From a router's logits to the experts that a token visits and their weights, and back.
//   l [T, E], in fp32 at least; scores s: softmax of l over all experts, or σ(l)
//   choice   the k largest l, of equal ones the lowest: as with s, where σ has not yet rounded to 1.
//            With groups of experts only those of the chosen groups count: the groups with the
//            largest sums of their two largest s, of equal ones the lowest
//   p [T, k] s of the chosen divided by their sum (of softmax: the softmax of the chosen l)
//   weights  scale · p
// Left out: DeepSeek-V3's biases that are added to s for the choice alone. They are no parameters
// with gradients, but moved after each step by the loads of the whole batch.
// Sources: Mixtral, arXiv 2401.04088, §2.1; DeepSeek-V3, arXiv 2412.19437, §2.1.2.
#pragma once

#include <cstdint>

#include "exec/torch_pch.h"
#include "shared/model/model.h"

namespace polyphony::exec {

// The k largest of each row of logits [T, E], falling; of equal ones the first. [T, k] int64.
torch::Tensor choose(const torch::Tensor& logits, std::int64_t k);
// The same as the module's groups allow.
torch::Tensor choose(const torch::Tensor& logits, const Module& module);

// What a layer keeps of its logits: of those chosen the softmax, or the sigmoids; [T, k] either way.
torch::Tensor chosen_scores(const torch::Tensor& logits, const torch::Tensor& chosen,
                            RouterScores kind);
torch::Tensor routing_weights(const torch::Tensor& scores, const Module& module);
// Of the chosen logits, by the gradient of the weights.
torch::Tensor chosen_gradient(const torch::Tensor& d_weights, const torch::Tensor& scores,
                              const Module& module);

// All of s divided by its sum, p [T, E]: what the balance term evens out.
struct Probabilities {
  torch::Tensor p, rest;  // rest: 1 − σ(l); undefined for softmax
  // Of l, by the gradient of p.
  torch::Tensor gradient(const torch::Tensor& d_p) const;
};
Probabilities probabilities(const torch::Tensor& logits, RouterScores kind);

}  // namespace polyphony::exec
