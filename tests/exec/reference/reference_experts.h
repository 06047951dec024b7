// Mixture of experts in the plainest way: every expert on every token, kept where it was chosen.
//   Scores are the softmax of the router's logits, or their sigmoids. Chosen are the experts that fewer
//   than k others beat: with a larger score, or an equal one and a lower number; with groups those of
//   the groups that as few others beat, with a larger sum of their two best scores. Weights are their
//   scores divided by their sum, times the scale.
#pragma once

#include "shared/model/model.h"
#include "tests/exec/reference/reference.h"

namespace polyphony::exec::testing {

// Up times what the gate makes of itself (Activation).
torch::Tensor reference_gate(const Module& module, const torch::Tensor& gate,
                             const torch::Tensor& up);

struct ReferenceExperts {
  torch::Tensor y;        // [T, H], the shared expert included
  torch::Tensor balance;  // E Σ_e f_e P_e of the tokens as one sample; 0 without tokens
};
// x [T, H]; `block`: "language.block0.".
ReferenceExperts reference_experts(const Module& module, const Tensors& values,
                                   const std::string& block, const torch::Tensor& x);

}  // namespace polyphony::exec::testing
