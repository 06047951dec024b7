#include "exec/experts/expert_products.h"

#include "exec/cuda/portable.h"
#include "exec/fused/forms.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

constexpr std::int64_t kBytes = 16;  // alignment of addresses and strides, in bytes
constexpr std::int64_t kMostExperts = 1023;

bool is_whole(const Tensor& x, std::int64_t elements) {
  return elements * x.element_size() % kBytes == 0;
}
// True if one of the last two dimensions is contiguous and the other's stride covers it.
bool fits(const Tensor& x) {
  const std::int64_t last = x.dim() - 1;
  const auto runs = [&](std::int64_t inner, std::int64_t outer) {
    return x.stride(inner) == 1 && x.stride(outer) >= x.size(inner) && is_whole(x, x.stride(outer));
  };
  return kernels::is_aligned(x.const_data_ptr()) &&
         (runs(last - 1, last) || runs(last, last - 1)) &&
         (x.dim() == 2 || is_whole(x, x.stride(0)));
}

}  // namespace

bool can_be_grouped(const Tensor& rows, const Tensor& matrices) {
  const std::int64_t experts = matrices.size(0);
  return rows.scalar_type() == matrices.scalar_type() && rows.size(0) > 0 && experts > 1 &&
         experts <= kMostExperts && rows.size(0) <= std::numeric_limits<std::int32_t>::max() &&
         fits(rows) && fits(matrices) && is_whole(rows, matrices.size(2));
}

bool is_grouped(const Tensor& rows, const Tensor& matrices, int capability) {
  return (capability == 9 || capability == 10) && rows.scalar_type() == torch::kBFloat16 &&
         can_be_grouped(rows, matrices);
}

Tensor expert_products(const Tensor& rows, const Tensor& matrices, const ExpertRows& expert_rows,
                       const LocalParameter* biases) {
  // ATen's implementation for CPUs is used in tests of the arguments.
  const bool one_launch =
      rows.is_cpu() ? kernels::forms() == kernels::Forms::fused &&
                          rows.scalar_type() != torch::kFloat64 && can_be_grouped(rows, matrices)
                    : kernels::forms() != kernels::Forms::aten &&
                          is_grouped(rows, matrices, kernels::capability(rows.device()));
  if (biases == nullptr && one_launch) return at::_grouped_mm(rows, matrices, expert_rows.ends());
  Tensor out = at::empty({rows.size(0), matrices.size(2)}, rows.options());
  std::int64_t first = 0;
  const std::vector<std::int64_t>& counts = expert_rows.counts();
  for (std::size_t e = 0; e < counts.size(); ++e) {
    const std::int64_t count = counts[e], expert = static_cast<std::int64_t>(e);
    if (count == 0) continue;
    Tensor part = out.narrow(0, first, count);
    const Tensor mine = rows.narrow(0, first, count);
    if (biases != nullptr)
      at::addmm_out(part, biases->value[expert], mine, matrices[expert]);
    else
      at::mm_out(part, mine, matrices[expert]);
    first += count;
  }
  return out;
}

}  // namespace polyphony::exec
