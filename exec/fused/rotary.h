// Fused rotary positions: takes queries and keys out of packed rows and rotates them by their
// positions, in one kernel; and the reverse for gradients.
//   cosine, sine  [rows, turned], fp32 or wider: the first `turned` elements x of a head become
//                 x∘cosine + x'∘sine, where x' is x with its halves swapped (the table contains
//                 the sine's signs); the other elements of the head's `width` are unchanged
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

struct TurnedHeads {
  torch::Tensor queries, keys;  // [rows, K, g, width], [rows, K, 1, width]
};
// Returns the rotated queries and keys of qkv [rows, K, g + 2, width].
TurnedHeads split_turned(const torch::Tensor& qkv, const torch::Tensor& cosine,
                         const torch::Tensor& sine);
// Returns the gradient of qkv [rows, K, g + 2, width] from those of q [rows, K, g, width] and of k
// and v [rows, K, 1, width].
torch::Tensor join_turned(const torch::Tensor& dq, const torch::Tensor& dk, const torch::Tensor& dv,
                          const torch::Tensor& cosine, const torch::Tensor& sine);

}  // namespace polyphony::exec::kernels
