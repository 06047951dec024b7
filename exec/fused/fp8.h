// FP8 operands of GEMMs (shared/fp8_scaling.h): casts, with scales of the operand at hand, and the
// product of two operands.
//   values = x ÷ scale, rounded to nearest; scale = largest magnitude ÷ largest number of the
//   format, in fp32, and at least its least normal number
//
// On a CPU the product is one of the scaled values in fp32 (fp64 if the result is), as no CPU has
// such a kernel. On a device it is at::_scaled_mm, which in LibTorch 2.11
// (aten/src/ATen/native/cuda/ScaledBlas.cpp) needs compute capability 9.0 for scales by row, sums
// over a multiple of 16 numbers, a multiple of 16 columns, and then returns bf16.
#pragma once

#include "exec/torch_pch.h"
#include "shared/fp8_scaling.h"

namespace polyphony::exec::kernels {

enum class Fp8Format : std::uint8_t { e4m3, e5m2 };
inline constexpr double kLargestE4m3 = 448, kLargestE5m2 = 57344;  // arXiv 2209.05433, table 1

// Sums run over a multiple of this many numbers, and results have a multiple of as many columns.
inline constexpr std::int64_t kFp8Multiple = 16;
// Major numbers of the oldest compute capability with such GEMMs by row, and of the latest for
// which that is known.
inline constexpr int kFp8Capability = 9, kFp8ByRowCapability = 10;

// values [rows, sum], contiguous; scale fp32, [rows, 1] (rowwise) or [1] (tensorwise).
struct Fp8Operand {
  torch::Tensor values, scale;
};

// Casts x [rows, sum].
Fp8Operand cast_fp8(const torch::Tensor& x, Fp8Format format, Fp8Scaling scaling);
// Casts the transpose of x [sum, rows], with zeros up to a multiple of kFp8Multiple of `sum`.
Fp8Operand cast_transposed_fp8(const torch::Tensor& x, Fp8Format format, Fp8Scaling scaling);

// Returns a bᵀ [rows of a, rows of b] in `format`. `fast_sums`: a GPU may add with fewer bits than
// fp32 has, which is up to twice as fast on compute capability 9.0.
torch::Tensor fp8_product(const Fp8Operand& a, const Fp8Operand& b, torch::Dtype format,
                          bool fast_sums);

}  // namespace polyphony::exec::kernels
