// RMSNorm of each query and key of packed rows in one pass each way (exec/attention/qk_norm.cpp).
//   qkv [rows, K, g + 2, width]: g queries, a key, a value; weights [width] of queries and of keys; all of one format
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

struct HeadsNormed {
  torch::Tensor y,
      scale;  // as qkv; [rows, K, g + 1, 1], fp32 at least: 1 ÷ root of the mean square
};
HeadsNormed head_norm_forward(const torch::Tensor& qkv, const torch::Tensor& query,
                              const torch::Tensor& key, double epsilon);

// What is not wanted is left undefined. dw [2, width]: of queries and of keys, summed in fp32 at least, in a fixed order.
struct HeadNormGradients {
  torch::Tensor dx, dw;
};
HeadNormGradients head_norm_backward(const torch::Tensor& dy, const torch::Tensor& qkv,
                                     const torch::Tensor& query, const torch::Tensor& key,
                                     const torch::Tensor& scale, bool wants_dx, bool wants_dw);

}  // namespace polyphony::exec::kernels
