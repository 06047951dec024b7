// The term that evens out the load of a router's experts, per sample, so that how samples are
// packed into work items makes no difference.
//   T_s tokens of sample s, k experts a token, p [T, E] the softmax of the router's logits, or
//   their sigmoids divided by their sum (exec/layers/routing.h)
//   f_e = (tokens of s that visit e) / (k T_s)      P_e = mean of p_e over the tokens of s
//   term = balance_weight · mean over the global batch's samples and the module's layers of
//          E Σ_e f_e P_e
// f has no gradient. Only the gradient is made, and added to that of the logits: neither the
// layer's output nor the reported loss holds the term. Source: the auxiliary loss of Switch
// Transformers, Fedus et al., arXiv 2101.03961 §2.2; one per sequence as in DeepSeek-V2, arXiv
// 2405.04434 §2.2.3, and of sigmoids in DeepSeek-V3, arXiv 2412.19437 §2.1.2.
#pragma once

#include <cstdint>

#include "exec/torch_pch.h"
#include "exec/work_input.h"
#include "shared/model/model.h"

namespace polyphony::exec {

// Made once per forward, shared by all its blocks.
struct BalancePlan {
  RouterScores scores = RouterScores::softmax;
  double scale = 0;          // balance_weight ÷ (samples of the global batch · layers); 0: no term
  std::int64_t samples = 0;  // of the work
  torch::Tensor sample;      // [T] int64: of each token
  torch::Tensor tokens;      // [samples] int64: T_s, on all ranks of the sequence
};
// Of all tensor-parallel ranks' tokens; `context_index`: place in the context group.
BalancePlan plan_balance(const Module& module, const WorkInput& data, int context_index);

// Of some tokens, whose samples are `sample`, which experts they visit: chosen [T, k] ->
// [samples, E] int64.
torch::Tensor balance_counts(const BalancePlan& plan, const torch::Tensor& sample,
                             const torch::Tensor& chosen, std::int64_t experts);
// The term's gradient by their logits [T, E]; `counts` are those of all ranks of the sequence.
torch::Tensor balance_gradient(const BalancePlan& plan, const torch::Tensor& sample,
                               const torch::Tensor& logits, const torch::Tensor& counts,
                               std::int64_t per_token);

}  // namespace polyphony::exec
