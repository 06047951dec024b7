// Gated linear units of rows with gate and up interleaved: [T, 2F] -> [T, F].
//   silu     u·silu(g)
//   gelu     u·gelu(g), by tanh, as Gemma has it
//   clamped  (v + 1)·h·σ(1.702 h), h = min(g, 7), v = u cut off at ±7; at the limits themselves and
//            beyond no gradient passes
// What the backward needs are gate and up alone; the rest it makes again. Where our kernels run (exec/cuda/forms.h)
// they are kept as they are; else as two planes [2, T, F], so that ATen's transcendental part runs over contiguous memory.
// Sources: Shazeer, arXiv 2002.05202; openai/gpt-oss, its reference model (1.702, 7).
#pragma once

#include "exec/torch_pch.h"
#include "shared/model/model.h"

namespace polyphony::exec {

torch::Tensor glu(const torch::Tensor& gate_up, Activation activation);

// Its parts, for layers with a backward of their own.
torch::Tensor glu_kept(const torch::Tensor& gate_up);
torch::Tensor glu_forward(const torch::Tensor& kept, Activation activation);
torch::Tensor glu_backward(const torch::Tensor& dy, const torch::Tensor& kept,
                           Activation activation);  // [T, 2F]

}  // namespace polyphony::exec
