// Cross-entropy over logits [rows, V/tp] in the format in which their GEMM writes them, without a
// wider copy of them.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

// Returns for each row, as [rows] in fp32 or wider: the largest logit, Σ e^(logit − largest), and
// the label's logit.
//   ids   [rows] index of the label among these logits; any valid index where `mine` is false
//   mine  [rows] bool: whether this rank has the label's logit; undefined: true for all rows
struct LogitStatistics {
  torch::Tensor largest, sum, label;
};
LogitStatistics logit_statistics(const torch::Tensor& logits, const torch::Tensor& ids,
                                 const torch::Tensor& mine);

// Overwrites the logits with their gradient, (e^(logit − largest) ÷ sum − [label]) · gradient ·
// scale. `gradient`: one number in the format of `largest`.
void logit_gradient(const torch::Tensor& logits, const torch::Tensor& ids,
                    const torch::Tensor& mine, const torch::Tensor& largest,
                    const torch::Tensor& sum, const torch::Tensor& gradient, double scale);

}  // namespace polyphony::exec::kernels
