// RMSNorm in one pass each way, LayerNorm's backward in one (exec/autograd/norm.cpp). x, dy [rows, H] and weight [H] of one
// format.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

struct RmsNormed {
  torch::Tensor y, scale;  // [rows, H]; [rows, 1], fp32 at least: 1 ÷ root of the mean square
};
RmsNormed rms_forward(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);

// What is not wanted is left undefined. dw is summed in fp32 at least, always in the same order.
struct RmsGradients {
  torch::Tensor dx, dw;
};
RmsGradients rms_backward(const torch::Tensor& dy, const torch::Tensor& x,
                          const torch::Tensor& weight, const torch::Tensor& scale, bool wants_dx,
                          bool wants_dw);

// Likewise; d_parameters [2, H]: of the weight and the bias. `mean`, `scale` [rows, 1] as ATen's LayerNorm gives them.
struct LayerGradients {
  torch::Tensor dx, d_parameters;
};
LayerGradients layer_backward(const torch::Tensor& dy, const torch::Tensor& x,
                              const torch::Tensor& weight, const torch::Tensor& mean,
                              const torch::Tensor& scale, bool wants_dx, bool wants_parameters);

}  // namespace polyphony::exec::kernels
