// Gated linear units, one fused kernel for each direction, on rows in which gate and up are
// interleaved (exec/autograd/glu.h).
#pragma once

#include "exec/torch_pch.h"
#include "shared/model/model.h"

namespace polyphony::exec::kernels {

torch::Tensor glu_forward(const torch::Tensor& gate_up,
                          Activation activation);  // [T, 2F] -> [T, F]
torch::Tensor glu_backward(const torch::Tensor& dy, const torch::Tensor& gate_up,
                           Activation activation);  // [T, 2F]

}  // namespace polyphony::exec::kernels
