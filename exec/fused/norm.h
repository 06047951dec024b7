// Fused kernels for RMSNorm (forward and backward) and for the backward pass of LayerNorm
// (exec/autograd/norm.cpp). x and dy [rows, H] and weight [H] have one format.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

struct RmsNormed {
  torch::Tensor y, scale;  // [rows, H]; [rows, 1], fp32 or wider: 1 ÷ root of the mean square
};
RmsNormed rms_forward(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);

// Gradients; one that is not wanted is undefined. dw is summed in fp32 or wider, always in the same
// order.
struct RmsGradients {
  torch::Tensor dx, dw;
};
RmsGradients rms_backward(const torch::Tensor& dy, const torch::Tensor& x,
                          const torch::Tensor& weight, const torch::Tensor& scale, bool wants_dx,
                          bool wants_dw);

// The same for LayerNorm. d_parameters [2, H]: gradients of the weight and the bias. `mean` and
// `scale` [rows, 1] are those that ATen's LayerNorm returns.
struct LayerGradients {
  torch::Tensor dx, d_parameters;
};
LayerGradients layer_backward(const torch::Tensor& dy, const torch::Tensor& x,
                              const torch::Tensor& weight, const torch::Tensor& mean,
                              const torch::Tensor& scale, bool wants_dx, bool wants_parameters);

}  // namespace polyphony::exec::kernels
