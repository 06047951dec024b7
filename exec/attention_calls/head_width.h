// Heads as LibTorch's attention kernels take them: padded to a width, contiguous in their last
// dimension. Tensors are [rows, heads, width].
#pragma once

#include <cmath>

#include "exec/torch_pch.h"

namespace polyphony::exec {

inline constexpr std::int64_t kAlignedWidth = 8;  // elements

inline std::int64_t aligned_width(std::int64_t width) {
  return (width + kAlignedWidth - 1) / kAlignedWidth * kAlignedWidth;
}
inline torch::Tensor as_wide(const torch::Tensor& x, std::int64_t width) {
  const torch::Tensor wide =
      x.size(2) == width ? x : at::constant_pad_nd(x, {0, width - x.size(2)});
  return wide.stride(2) == 1 ? wide : wide.contiguous();
}
inline torch::Tensor as_narrow(const torch::Tensor& x, std::int64_t width) {
  return x.size(2) == width ? x : x.narrow(2, 0, width);
}
// Returns the factor on the scores of queries, 1 / sqrt(width).
inline double scale_of(const torch::Tensor& queries) {
  return 1 / std::sqrt(static_cast<double>(queries.size(2)));
}

}  // namespace polyphony::exec
