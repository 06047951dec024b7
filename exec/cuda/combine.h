// Answers of experts to the tokens that asked, with weights, in one pass each way (exec/layers/dispatch.h).
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

// here [S, H]; place [S]: of a slot's row in `here`; weights [S], fp32 at least, undefined: 1 -> [S/k, H].
torch::Tensor combine(const torch::Tensor& here, const torch::Tensor& place,
                      const torch::Tensor& weights, std::int64_t per_token);

// order [S]: of a row in `here`, its slot.
struct CombineGradients {
  torch::Tensor here, weights;  // [S, H], [S] by slot
};
CombineGradients combine_backward(const torch::Tensor& dy, const torch::Tensor& here,
                                  const torch::Tensor& order, const torch::Tensor& weights,
                                  std::int64_t per_token);

}  // namespace polyphony::exec::kernels
