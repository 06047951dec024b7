#include "exec/fused/fp8.h"

#include <limits>

#include "exec/cuda/fp8_body.h"
#include "exec/fused/forms.h"
#include "exec/fused/run.h"

namespace polyphony::exec::kernels {

using torch::Tensor;

namespace {

torch::Dtype dtype_of(Fp8Format format) {
  return format == Fp8Format::e4m3 ? torch::kFloat8_e4m3fn : torch::kFloat8_e5m2;
}
double largest_of(Fp8Format format) {
  return format == Fp8Format::e4m3 ? kLargestE4m3 : kLargestE5m2;
}
std::uint8_t* bytes_of(const Tensor& values) {
  return static_cast<std::uint8_t*>(values.mutable_data_ptr());
}
// Returns x as the values that scales are computed from: fp32, whatever the format of x.
Tensor in_fp32(const Tensor& x) { return x.to(torch::kFloat32); }

template <class Use>
void by_fp8_format(Fp8Format format, const Use& use) {
  if (format == Fp8Format::e4m3) return use.template operator()<E4m3>();
  use.template operator()<E5m2>();
}

// Returns the largest magnitudes of x along a dimension, [rows, 1] or [columns, 1], in one pass
// over x.
Tensor largest_fused(const Tensor& x, bool of_columns) {
  const std::int64_t rows = x.size(0), width = x.size(1);
  const auto options = x.options().dtype(torch::kFloat32);
  Tensor largest;
  by_format(x.scalar_type(), [&]<class T>() {
    const bool aligned = rows_aligned<T>(width) && all_aligned(x);
    if (of_columns) {
      const std::int64_t packs = packs_of<T>(width), each = ColumnLargest<T>::kRows;
      const std::int64_t blocks = (rows + each - 1) / each;
      const Tensor parts = at::empty({blocks, width}, options);
      run_each(ColumnLargest<T>{read<T>(x), write<float>(parts), rows, width, packs, aligned},
               blocks * packs, x.device());
      largest = parts.amax(0).unsqueeze(1);
    } else {
      largest = at::empty({rows, 1}, options);
      RowLargest<T> body{};
      body.x = read<T>(x);
      body.largest = write<float>(largest);
      body.width = width;
      body.aligned = aligned;
      run_rows(body, rows_of<T>(rows, width, x.device()), x.device());
    }
  });
  return largest;
}

// Returns the scale of each row of the operand, or the one of all. `transposed`: its rows are the
// columns of x.
Tensor scale_of(const Tensor& x, bool transposed, Fp8Format format, Fp8Scaling scaling) {
  const bool by_row = scaling == Fp8Scaling::rowwise;
  Tensor largest;
  if (x.numel() == 0)
    largest =
        at::zeros({transposed ? x.size(1) : x.size(0), 1}, x.options().dtype(torch::kFloat32));
  else if (wanted(x))
    largest = largest_fused(x, transposed && by_row);
  else
    largest = in_fp32(x).abs().amax({transposed ? 0 : 1}, true).view({-1, 1});
  if (!by_row)
    largest = largest.numel() == 0 ? at::zeros({1}, largest.options()) : largest.amax().view({1});
  // The least normal number, so that its reciprocal is finite. clamp_min keeps NaN.
  const double least = static_cast<double>(std::numeric_limits<float>::min());
  return largest.clamp_min(least * largest_of(format)).div_(largest_of(format));
}

}  // namespace

Fp8Operand cast_fp8(const Tensor& x_any, Fp8Format format, Fp8Scaling scaling) {
  const Tensor x = x_any.contiguous();
  const Tensor scale = scale_of(x, false, format, scaling);
  if (!wanted(x) || x.size(1) % kFp8Multiple != 0)
    return {in_fp32(x).mul(scale.reciprocal()).to(dtype_of(format)), scale};
  const Tensor values = at::empty(x.sizes(), x.options().dtype(dtype_of(format)));
  by_format(x.scalar_type(), [&]<class T>() {
    by_fp8_format(format, [&]<class F>() {
      const std::int64_t packs = packs_of<T>(x.size(1));
      run_each(Fp8Cast<T, F>{read<T>(x), read<float>(scale), scaling == Fp8Scaling::rowwise ? 1 : 0,
                             bytes_of(values), packs, all_aligned(x)},
               x.size(0) * packs, x.device());
    });
  });
  return {values, scale};
}

Fp8Operand cast_transposed_fp8(const Tensor& x_any, Fp8Format format, Fp8Scaling scaling) {
  const Tensor x = x_any.contiguous();
  const Tensor scale = scale_of(x, true, format, scaling);
  const std::int64_t rows = x.size(0), width = x.size(1);
  const std::int64_t padded = (rows + kFp8Multiple - 1) / kFp8Multiple * kFp8Multiple;
  if (!wanted(x)) {
    const Tensor values = at::zeros({width, padded}, x.options().dtype(dtype_of(format)));
    values.narrow(1, 0, rows).copy_(in_fp32(x.t()).mul(scale.reciprocal()).to(dtype_of(format)));
    return {values, scale};
  }
  const Tensor values = at::empty({width, padded}, x.options().dtype(dtype_of(format)));
  by_format(x.scalar_type(), [&]<class T>() {
    by_fp8_format(format, [&]<class F>() {
      using Body = Fp8Transpose<T, F>;
      const std::int64_t packs = packs_of<T>(width);
      const std::int64_t pairs = (padded / Body::kRows + 1) / 2;
      run_each(Body{read<T>(x), read<float>(scale), scaling == Fp8Scaling::rowwise ? 1 : 0,
                    bytes_of(values), rows, width, packs, padded,
                    rows_aligned<T>(width) && all_aligned(x)},
               pairs * packs * 2, x.device());
    });
  });
  return {values, scale};
}

Tensor fp8_product(const Fp8Operand& a, const Fp8Operand& b, torch::Dtype format, bool fast_sums) {
  if (a.values.is_cpu()) {
    const auto wide = format == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
    const auto scaled = [&](const Fp8Operand& x) { return x.values.to(wide).mul_(x.scale); };
    return at::mm(scaled(a), scaled(b).t()).to(format);
  }
  const Tensor scale = b.scale.numel() == 1 ? b.scale : b.scale.t();
  return at::_scaled_mm(a.values, b.values.t(), a.scale, scale, /*bias=*/std::nullopt,
                        /*scale_result=*/std::nullopt, format, fast_sums);
}

}  // namespace polyphony::exec::kernels
