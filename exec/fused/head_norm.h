// RMSNorm of each query head and key head of packed rows, one fused kernel for each direction
// (exec/attention/qk_norm.cpp).
//   qkv [rows, K, g + 2, width]: g queries, a key, a value; weights [width] for queries and for
//   keys; all in one format
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

struct HeadsNormed {
  torch::Tensor y;      // the shape of qkv
  torch::Tensor scale;  // [rows, K, g + 1, 1], fp32 or wider: 1 ÷ root of the mean square
};
HeadsNormed head_norm_forward(const torch::Tensor& qkv, const torch::Tensor& query,
                              const torch::Tensor& key, double epsilon);

// Gradients; one that is not wanted is undefined. dw [2, width]: for queries and for keys, summed
// in fp32 or wider in a fixed order.
struct HeadNormGradients {
  torch::Tensor dx, dw;
};
HeadNormGradients head_norm_backward(const torch::Tensor& dy, const torch::Tensor& qkv,
                                     const torch::Tensor& query, const torch::Tensor& key,
                                     const torch::Tensor& scale, bool wants_dx, bool wants_dw);

}  // namespace polyphony::exec::kernels
