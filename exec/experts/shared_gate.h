// Gates the output of the shared expert (Module::shared_gate).
//   x [rows, H] the expert's input, y [rows, H] its output, weight w [1, H]:  σ(x wᵀ)∘y
//   backward with s = σ(x wᵀ):  dy∘s for y; dl = s(1 − s)∘Σ dy∘y over the features, whose dl w is
//   added to dx and whose dw = dlᵀ x is queued
// Rows are those that the rank holds between blocks. Saves y and s, and x if the weight is trained.
// Source: huggingface/transformers modeling_qwen3_next.py, Qwen3NextSparseMoeBlock.
#pragma once

#include "exec/autograd/linear.h"

namespace polyphony::exec {

torch::Tensor gate_shared(const Pass& pass, const torch::Tensor& x, const torch::Tensor& y,
                          LocalParameter* weight);

}  // namespace polyphony::exec
