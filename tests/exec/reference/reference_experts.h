// A reference for mixtures of experts, written as simply as possible: every expert on every token,
// used where it was chosen.
//   Scores are the softmax of the router's logits, or their sigmoids. An expert is chosen if fewer
//   than k others beat it: with a larger score, or an equal one and a lower index. With groups,
//   groups are chosen in the same way by the sum of their two best scores. Weights are the chosen
//   scores divided by their sum, times the scale.
#pragma once

#include "shared/model/model.h"
#include "tests/exec/reference/reference.h"

namespace polyphony::exec::testing {

// Up times the activation of the gate (Activation).
torch::Tensor reference_gate(const Module& module, const torch::Tensor& gate,
                             const torch::Tensor& up);

struct ReferenceExperts {
  torch::Tensor y;        // [T, H], the shared expert included
  torch::Tensor balance;  // E Σ_e f_e P_e, with all tokens as one sample; 0 without tokens
};
// x [T, H]; `block`: "language.block0.".
ReferenceExperts reference_experts(const Module& module, const Tensors& values,
                                   const std::string& block, const torch::Tensor& x);

}  // namespace polyphony::exec::testing
