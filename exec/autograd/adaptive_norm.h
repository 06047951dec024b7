// Layers whose scale, shift or gate differs from item to item.
//   x, y [rows, H]: rows of n items, one item after another, `rows` of each
//   scale, shift, gate [n, H]
//   adaptive_norm  (x − mean) ÷ deviation ∘ (1 + scale) + shift, each row by itself
//   gated_sum      x + gate∘y
// The gradient of an item's scale, shift or gate is a sum over its rows: only part of it where
// other ranks hold others. No weights here: what makes scale, shift and gate has them. Source:
// adaptive layer norm of Peebles and Xie, arXiv 2212.09748, section 3.2.
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
