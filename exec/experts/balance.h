// The load-balancing loss of a router. It is computed per sample, so it does not depend on how
// samples are packed into microbatches.
//   T_s tokens of sample s, k experts per token, E experts; p [T, E]: the softmax of the router's
//   logits, or their sigmoids divided by their sum (exec/experts/routing.h)
//   f_e = (tokens of s routed to e) / (k T_s)       P_e = mean of p_e over the tokens of s
//   loss = balance_weight · mean over the global batch's samples and the module's layers of
//          E Σ_e f_e P_e
//
// f has no gradient. Only the gradient of the loss is computed; it is added to the gradient of the
// logits. Neither the layer's output nor the reported loss includes the balance loss.
//
// Source: the auxiliary loss of Switch Transformers, Fedus et al., arXiv 2101.03961 §2.2; per
// sequence as in DeepSeek-V2, arXiv 2405.04434 §2.2.3, and with sigmoids as in DeepSeek-V3, arXiv
// 2412.19437 §2.1.2.
#pragma once

#include <cstdint>

#include "exec/frame/balance_plan.h"
#include "exec/torch_pch.h"

namespace polyphony::exec {

// Counts the tokens that each expert receives from each sample: chosen [T, k] -> [samples, E]
// int64. `sample` [T] gives each token's sample.
torch::Tensor balance_counts(const BalancePlan& plan, const torch::Tensor& sample,
                             const torch::Tensor& chosen, std::int64_t experts);
// Returns the gradient of the balance loss with respect to the logits [T, E]. `counts` are the
// counts of balance_counts() summed over all context-parallel ranks.
torch::Tensor balance_gradient(const BalancePlan& plan, const torch::Tensor& sample,
                               const torch::Tensor& logits, const torch::Tensor& counts,
                               std::int64_t per_token);

}  // namespace polyphony::exec
