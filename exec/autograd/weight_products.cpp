#include "exec/autograd/weight_products.h"

#include <algorithm>

#include "exec/autograd/wide_gradient.h"
#include "exec/fused/fp8.h"

namespace polyphony::exec {

using kernels::Fp8Format;
using torch::Tensor;

namespace {

Fp8Format gradient_format(Fp8Scaling scaling) {
  return scaling == Fp8Scaling::tensorwise ? Fp8Format::e5m2 : Fp8Format::e4m3;
}
bool in_fp8(const LocalParameter& weight) { return weight.fp8 != Fp8Scaling::off; }

// Format of the products that make a weight gradient: on a device those with scales by row are
// bf16 (exec/fused/fp8.h).
torch::Dtype sum_format(const LocalParameter& weight) {
  const bool narrow = weight.fp8 == Fp8Scaling::rowwise && !weight.grad.is_cpu();
  return narrow ? torch::kBFloat16 : weight.grad.scalar_type();
}

// Returns the rows of each block of a weight gradient with `out` rows of `bytes` bytes: about equal
// blocks, of whole tiles of the GEMM's kernels.
std::int64_t rows_of_block(std::int64_t out, std::int64_t bytes) {
  constexpr std::int64_t kTile = 128;
  const std::int64_t most = std::max<std::int64_t>(1, kFp8SumBytes / (bytes * kTile)) * kTile;
  const std::int64_t blocks = (out + most - 1) / most, each = (out + blocks - 1) / blocks;
  return (each + kTile - 1) / kTile * kTile;
}

}  // namespace

Tensor output_product(const LocalParameter& weight, const LocalParameter* bias, const Tensor& x) {
  const Tensor& value = weight.value;
  if (!in_fp8(weight))
    return bias != nullptr ? at::addmm(bias->value, x, value.t()) : at::mm(x, value.t());
  Tensor y = kernels::fp8_product(kernels::cast_fp8(x, Fp8Format::e4m3, weight.fp8),
                                  kernels::cast_fp8(value, Fp8Format::e4m3, weight.fp8),
                                  x.scalar_type(), /*fast_sums=*/true);
  return bias != nullptr ? y.add_(bias->value) : y;
}

Tensor input_gradient(const LocalParameter& weight, const Tensor& dy) {
  if (!in_fp8(weight)) return at::mm(dy, weight.value);
  return kernels::fp8_product(
      kernels::cast_fp8(dy, gradient_format(weight.fp8), weight.fp8),
      kernels::cast_transposed_fp8(weight.value, Fp8Format::e4m3, weight.fp8), dy.scalar_type(),
      /*fast_sums=*/false);
}

void add_weight_gradient(LocalParameter& weight, const Tensor& dy, const Tensor& x) {
  if (!in_fp8(weight)) return add_product(weight.grad, dy, x);
  if (dy.size(0) == 0) return;
  const kernels::Fp8Operand rows = kernels::cast_transposed_fp8(dy, gradient_format(weight.fp8),
                                                                weight.fp8),
                            columns = kernels::cast_transposed_fp8(x, Fp8Format::e4m3, weight.fp8);
  const bool by_row = rows.scale.numel() > 1;
  const std::int64_t out = rows.values.size(0);
  const std::int64_t each = rows_of_block(out, x.size(1) * weight.grad.element_size());
  for (std::int64_t first = 0; first < out; first += each) {
    const std::int64_t count = std::min(each, out - first);
    const kernels::Fp8Operand block{rows.values.narrow(0, first, count),
                                    by_row ? rows.scale.narrow(0, first, count) : rows.scale};
    weight.grad.narrow(0, first, count)
        .add_(kernels::fp8_product(block, columns, sum_format(weight), /*fast_sums=*/false));
  }
}

bool fits_fp8(const Parameter& parameter, const Tensor& value) {
  return parameter.role == Role::matrix && !parameter.expert && value.dim() == 2 &&
         parameter.rows != Rows::items && value.size(0) % kernels::kFp8Multiple == 0 &&
         value.size(1) % kernels::kFp8Multiple == 0;
}

}  // namespace polyphony::exec
