// silu(gate)∘up of rows with gate and up interleaved: [T, 2F] -> [T, F].
//   Two planes, [2, T, F], so that the transcendental part runs over contiguous memory.
// Source: Shazeer, arXiv 2002.05202.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec {

torch::Tensor swiglu(const torch::Tensor& gate_up);

// Its parts, for layers with a backward of their own.
torch::Tensor swiglu_planes(const torch::Tensor& gate_up);
torch::Tensor swiglu_forward(const torch::Tensor& planes);
torch::Tensor swiglu_backward(const torch::Tensor& dy, const torch::Tensor& planes);  // [T, 2F]

}  // namespace polyphony::exec
