// Cross-entropy of logits [rows, V/tp] in the format that their matrix product has: no wider copy of them.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

// Of each row [rows], fp32 at least: largest logit, Σ e^(logit − largest), the label's logit.
//   ids   place of the label among these logits, any where it is not `mine`
//   mine  bool; undefined: all
struct LogitStatistics {
  torch::Tensor largest, sum, label;
};
LogitStatistics logit_statistics(const torch::Tensor& logits, const torch::Tensor& ids,
                                 const torch::Tensor& mine);

// Logits become (e^(logit − largest) ÷ sum − [label]) · gradient · scale; `gradient`: one number of largest's format.
void logit_gradient(const torch::Tensor& logits, const torch::Tensor& ids,
                    const torch::Tensor& mine, const torch::Tensor& largest,
                    const torch::Tensor& sum, const torch::Tensor& gradient, double scale);

}  // namespace polyphony::exec::kernels
