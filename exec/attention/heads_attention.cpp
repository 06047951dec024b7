#include "exec/attention/heads_attention.h"

#include <algorithm>
#include <limits>

#include "exec/autograd/wide_gradient.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Queries [begin, begin + rows) and the keys [first, first + keys) that they see.
struct Part {
  std::int64_t begin, rows, first, keys;
  bool causal;                 // the first `rows` keys are the queries' own
  std::optional<Tensor> mask;  // [rows, keys]
};

template <class Use>
void each_part(const Tensor& queries, bool causal, std::int64_t window, Use use) {
  const std::int64_t length = queries.size(2);
  if (window == 0 || length <= window) {
    use(Part{0, length, 0, length, causal, {}});
    return;
  }
  std::optional<Tensor> mask;  // of all parts but the first and the last
  for (std::int64_t begin = 0; begin < length; begin += window) {
    const std::int64_t rows = std::min(window, length - begin);
    if (begin == 0) {
      use(Part{0, rows, 0, rows, true, {}});
      continue;
    }
    const std::int64_t ahead = window - 1, keys = rows + ahead;
    if (!mask || mask->size(0) != rows)
      mask = window_mask(rows, keys, ahead, window, queries.options());
    use(Part{begin, rows, begin - ahead, keys, false, mask});
  }
}

// The kernel takes values of the keys' width only.
Tensor as_wide(const Tensor& values, const Tensor& queries) {
  const std::int64_t missing = queries.size(3) - values.size(3);
  return missing == 0 ? values : at::constant_pad_nd(values, {0, missing});
}
Tensor as_narrow(const Tensor& values, std::int64_t width) {
  return values.size(3) == width ? values : values.narrow(3, 0, width);
}

}  // namespace

Tensor window_mask(std::int64_t rows, std::int64_t keys, std::int64_t ahead, std::int64_t window,
                   const torch::TensorOptions& format) {
  const auto whole = format.dtype(torch::kInt64);
  const Tensor distance = at::arange(ahead, ahead + rows, whole).unsqueeze(1) -
                          at::arange(keys, whole).unsqueeze(0);  // of a key before its query
  return at::zeros({rows, keys}, format)
      .masked_fill_(distance.lt(0).logical_or_(distance.ge(window)),
                    -std::numeric_limits<double>::infinity());
}

Attended attend(const HeadTensors& heads, bool causal, std::int64_t window) {
  const std::int64_t group = heads.queries.size(1), width = heads.values.size(3);
  const Tensor values = as_wide(heads.values, heads.queries);
  std::vector<Tensor> outs, sums;
  each_part(heads.queries, causal, window, [&](const Part& part) {
    const auto seen = [&](const Tensor& x) {
      return x.narrow(2, part.first, part.keys).expand({-1, group, -1, -1});
    };
    const auto [out, sum] = at::_scaled_dot_product_flash_attention_for_cpu(
        heads.queries.narrow(2, part.begin, part.rows), seen(heads.keys), seen(values), 0.0,
        part.causal, part.mask);
    outs.push_back(out);
    sums.push_back(sum);
  });
  if (outs.size() == 1) return {as_narrow(outs[0], width), sums[0]};
  return {as_narrow(at::cat(outs, 2), width), at::cat(sums, 2)};
}

HeadTensors attend_backward(const Tensor& dy, const HeadTensors& heads, const Attended& attended,
                            bool causal, std::int64_t window) {
  const std::int64_t group = heads.queries.size(1), width = heads.values.size(3);
  const Tensor values = as_wide(heads.values, heads.queries);
  const Tensor wide_dy = as_wide(dy, heads.queries), out = as_wide(attended.out, heads.queries);
  std::vector<Tensor> d_queries;
  Tensor d_keys, d_values;
  each_part(heads.queries, causal, window, [&](const Part& part) {
    const auto own = [&](const Tensor& x) { return x.narrow(2, part.begin, part.rows); };
    const auto seen = [&](const Tensor& x) {
      return x.narrow(2, part.first, part.keys).expand({-1, group, -1, -1});
    };
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        own(wide_dy), own(heads.queries), seen(heads.keys), seen(values), own(out),
        own(attended.sums), 0.0, part.causal, part.mask);
    d_queries.push_back(dq);
    const Tensor keys = dk.sum(1, /*keepdim=*/true), v = dv.sum(1, /*keepdim=*/true);
    if (part.keys == heads.keys.size(2)) {
      d_keys = keys;
      d_values = v;
      return;
    }
    if (!d_keys.defined()) {
      d_keys = at::zeros_like(heads.keys, at::MemoryFormat::Contiguous);
      d_values = at::zeros_like(values, at::MemoryFormat::Contiguous);
    }
    d_keys.narrow(2, part.first, part.keys).add_(keys);
    d_values.narrow(2, part.first, part.keys).add_(v);
  });
  return {d_queries.size() == 1 ? d_queries[0] : at::cat(d_queries, 2), d_keys,
          as_narrow(d_values, width)};
}

void add_sinks(Attended& attended, const Tensor& sinks) {
  const Tensor sums = at::logaddexp(attended.sums, sinks);
  attended.out = at::mul(attended.out, at::exp(attended.sums - sums).unsqueeze(3))
                     .to(attended.out.scalar_type());
  attended.sums = sums;
}

Tensor sink_gradient(const Tensor& dy, const Attended& attended, const Tensor& sinks) {
  return at::exp(sinks - attended.sums).mul_(at::mul(widened(dy), attended.out).sum(3)).neg_();
}

}  // namespace polyphony::exec
