// Adaptive layer normalization and gated residual sums, whose scale, shift and gate differ from
// item to item.
//   x, y [rows, H]: the rows of n items, one item after another; item i has rows[i] of them
//   scale, shift, gate [n, H]
//   adaptive_norm  (x − mean) ÷ deviation ∘ (1 + scale) + shift, with the statistics of each row
//   gated_sum      x + gate∘y
// The gradient of an item's scale, shift or gate is a sum over its rows; it is only a part of that
// sum if other ranks have some of the item's rows. There are no weights here: they belong to the
// layer that computes scale, shift and gate.
// Source: adaptive layer norm of Peebles and Xie, arXiv 2212.09748, section 3.2.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

torch::Tensor adaptive_norm(const torch::Tensor& x, const torch::Tensor& shift,
                            const torch::Tensor& scale, const std::vector<std::int64_t>& rows);
torch::Tensor gated_sum(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& gate,
                        const std::vector<std::int64_t>& rows);

}  // namespace polyphony::exec
