// Gated linear units of rows in which gate (g) and up (u) are interleaved: [T, 2F] -> [T, F].
//   silu     u·silu(g)
//   gelu     u·gelu(g), with the tanh approximation, as in Gemma
//   clamped  (v + 1)·h·σ(1.702 h), h = min(g, 7), v = u clamped to ±7; the gradient is zero at the
//            limits and beyond
// Only gate and up are saved for the backward pass, which recomputes the rest. Where our kernels
// run (exec/fused/forms.h) they are saved as they are; elsewhere as two planes [2, T, F], so that
// ATen's transcendental functions run over contiguous memory.
// Sources: Shazeer, arXiv 2002.05202; openai/gpt-oss, its reference model (1.702, 7).
#pragma once

#include "exec/torch_pch.h"
#include "shared/model/model.h"

namespace polyphony::exec {

torch::Tensor glu(const torch::Tensor& gate_up, Activation activation);

// The parts of glu(), for layers with a backward pass of their own. glu_kept() returns the tensor
// to save, which glu_forward() and glu_backward() take.
torch::Tensor glu_kept(const torch::Tensor& gate_up);
torch::Tensor glu_forward(const torch::Tensor& kept, Activation activation);
torch::Tensor glu_backward(const torch::Tensor& dy, const torch::Tensor& kept,
                           Activation activation);  // [T, 2F]

}  // namespace polyphony::exec
