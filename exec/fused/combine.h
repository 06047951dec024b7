// Combines the experts' outputs into the tokens' rows as weighted sums, in one kernel for each
// direction (exec/experts/dispatch.h). S slots = tokens · k experts per token.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

// Returns the tokens' rows [S/k, H]. here [S, H]: the experts' outputs; place [S]: the row in
// `here` of each slot; weights [S], fp32 or wider; undefined: 1. `per_token` is k.
torch::Tensor combine(const torch::Tensor& here, const torch::Tensor& place,
                      const torch::Tensor& weights, std::int64_t per_token);

// Returns the gradients. order [S]: the slot of each row in `here`.
struct CombineGradients {
  torch::Tensor here, weights;  // [S, H], [S] by slot
};
CombineGradients combine_backward(const torch::Tensor& dy, const torch::Tensor& here,
                                  const torch::Tensor& order, const torch::Tensor& weights,
                                  std::int64_t per_token);

}  // namespace polyphony::exec::kernels
