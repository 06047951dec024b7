// Queries and keys taken out of packed rows and turned by their positions, in one pass; and gradients put back.
//   cosine, sine  [rows, turned], fp32 at least: element i < turned of a head becomes x∘cosine + x'∘sine, x' with its
//                 halves swapped (the sine's signs are in the table); the rest of its `width` elements stay
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

struct TurnedHeads {
  torch::Tensor queries, keys;  // [rows, K, g, width], [rows, K, 1, width]
};
// qkv [rows, K, g + 2, width]
TurnedHeads split_turned(const torch::Tensor& qkv, const torch::Tensor& cosine,
                         const torch::Tensor& sine);
// Of q [rows, K, g, width], k and v [rows, K, 1, width] -> [rows, K, g + 2, width]
torch::Tensor join_turned(const torch::Tensor& dq, const torch::Tensor& dk, const torch::Tensor& dv,
                          const torch::Tensor& cosine, const torch::Tensor& sine);

}  // namespace polyphony::exec::kernels
