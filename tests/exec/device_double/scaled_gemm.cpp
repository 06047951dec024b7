// A double of a GPU's FP8 GEMM (at::_scaled_mm) for the queued device, with the checks of LibTorch
// 2.11 on compute capability 9.0 (aten/src/ATen/native/cuda/ScaledBlas.cpp). Results may also be
// fp64, so that fp64 can be compared with exact results. Scales by row give bf16 (or fp64): other
// formats depend on the version of cuBLAS.
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include "shared/error.h"
#include "tests/exec/device_double/queued_device.h"

namespace polyphony::exec::testing::queued {

namespace {

using torch::Tensor;

constexpr std::int64_t kMultiple = 16;

bool is_fp8(const Tensor& x) {
  return x.scalar_type() == torch::kFloat8_e4m3fn || x.scalar_type() == torch::kFloat8_e5m2;
}

void check(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b,
           torch::Dtype out) {
  POLYPHONY_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0) && is_fp8(a) && is_fp8(b),
                  "an FP8 GEMM of " << a.sizes() << " and " << b.sizes());
  POLYPHONY_CHECK(a.size(1) % kMultiple == 0 && b.size(1) % kMultiple == 0,
                  a.sizes() << " by " << b.sizes() << ": not multiples of " << kMultiple);
  POLYPHONY_CHECK(
      a.stride(1) == 1 && a.stride(0) >= a.size(1) && b.stride(0) == 1 && b.stride(1) >= b.size(0),
      "the first operand must be row-major, the second column-major");
  POLYPHONY_CHECK(a.scalar_type() != torch::kFloat8_e5m2 || b.scalar_type() != torch::kFloat8_e5m2,
                  "two operands in E5M2");
  POLYPHONY_CHECK(scale_a.scalar_type() == torch::kFloat32 &&
                      scale_b.scalar_type() == torch::kFloat32 && scale_a.device() == a.device() &&
                      scale_b.device() == a.device(),
                  "scales must be fp32, on the device");
  const bool whole = scale_a.numel() == 1 && scale_b.numel() == 1;
  const bool by_row = scale_a.sizes() == at::IntArrayRef({a.size(0), 1}) &&
                      scale_b.sizes() == at::IntArrayRef({1, b.size(1)}) &&
                      scale_a.is_contiguous() && scale_b.is_contiguous();
  POLYPHONY_CHECK(whole || by_row, "scales of " << scale_a.sizes() << " and " << scale_b.sizes());
  POLYPHONY_CHECK(
      out == torch::kBFloat16 || out == torch::kFloat64 || (whole && out == torch::kFloat32),
      "no FP8 GEMM with a result in " << out);
}

Tensor scaled_mm(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b,
                 const std::optional<Tensor>& bias, const std::optional<Tensor>& scale_result,
                 std::optional<torch::Dtype> format, bool /*fast_sums*/) {
  POLYPHONY_CHECK(!bias && !scale_result && format, "FP8 GEMMs' other uses are not in this double");
  check(a, b, scale_a, scale_b, *format);
  const Tensor out = at::empty({a.size(0), b.size(1)}, a.options().dtype(*format));
  const auto seen = seen_by_kernels;
  queue_on_current(
      a.device(),
      [a = seen(a), b = seen(b), scale_a = seen(scale_a), scale_b = seen(scale_b),
       out = seen(out)] {
        const at::AutoDispatchBelowAutograd kernels_alone;
        const auto wide = out.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
        out.copy_(at::mm(a.to(wide).mul_(scale_a), b.to(wide).mul_(scale_b)));
      },
      "FP8 GEMM");
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) { library.impl("_scaled_mm", &scaled_mm); }

}  // namespace

}  // namespace polyphony::exec::testing::queued
