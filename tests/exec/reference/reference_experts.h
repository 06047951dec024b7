// Mixture of experts in the plainest way: every expert on every token, kept where it was chosen.
//   Chosen are the experts that fewer than k others beat: with a larger probability, or an equal
//   one and a lower number. Weights are their probabilities divided by their sum.
#pragma once

#include "shared/model/model.h"
#include "tests/exec/reference/reference.h"

namespace polyphony::exec::testing {

struct ReferenceExperts {
  torch::Tensor y;        // [T, H], the shared expert included
  torch::Tensor balance;  // E Σ_e f_e P_e of the tokens as one sample; 0 without tokens
};
// x [T, H]; `block`: "language.block0.".
ReferenceExperts reference_experts(const Module& module, const Tensors& values,
                                   const std::string& block, const torch::Tensor& x);

}  // namespace polyphony::exec::testing
