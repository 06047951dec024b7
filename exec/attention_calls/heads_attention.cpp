#include "exec/attention_calls/heads_attention.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "exec/autograd/wide_gradient.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

Tensor part(const Tensor& x, Interval rows) { return x.narrow(2, rows.begin, rows.size()); }

// The kernel supports only values of the keys' width.
Tensor as_wide(const Tensor& values, const Tensor& queries) {
  const std::int64_t missing = queries.size(3) - values.size(3);
  return missing == 0 ? values : at::constant_pad_nd(values, {0, missing});
}
Tensor cut_padding(const Tensor& values, std::int64_t width) {
  return values.size(3) == width ? values : values.narrow(3, 0, width);
}

// Returns true if one call has all queries and keys, in their order.
bool is_whole(const std::vector<AttentionCall>& calls, const HeadTensors& heads) {
  return calls.size() == 1 && calls[0].queries.size() == heads.queries.size(2) &&
         calls[0].keys.size() == heads.keys.size(2);
}

// Caches the last bitmap: consecutive calls at a window's edge have equal bitmaps, except the last.
class Bitmaps {
 public:
  explicit Bitmaps(const torch::TensorOptions& format) : format_(format) {}
  std::optional<Tensor> of(const AttentionCall& call) {
    if (call.filling != Filling::bitmap) return std::nullopt;
    const Shape shape{call.queries.size(), call.keys.size(), call.least, call.most};
    if (!made_.defined() || shape != shape_) made_ = bitmap(call, format_);
    shape_ = shape;
    return made_;
  }

 private:
  using Shape = std::array<std::int64_t, 4>;  // queries, keys, least and most
  torch::TensorOptions format_;
  Tensor made_;
  Shape shape_{};
};

}  // namespace

void join(const Attended& all, const Attended& more) {
  const Tensor both = at::logaddexp(all.sums, more.sums);
  const Tensor finite = both.masked_fill(both.isneginf(), 0);  // for a query without any key
  const auto weight = [&](const Tensor& sums) { return at::exp(sums - finite).unsqueeze(-1); };
  all.out.mul_(weight(all.sums)).addcmul_(more.out.to(all.out.scalar_type()), weight(more.sums));
  all.sums.copy_(both);
}

Attended attend(const HeadTensors& heads, const AttentionCalls& calls) {
  return heads.queries.is_cpu() ? attend(heads, calls.each) : attend(heads, calls.packed);
}

HeadTensors attend_backward(const Tensor& dy, const HeadTensors& heads, const Attended& attended,
                            const AttentionCalls& calls) {
  return heads.queries.is_cpu() ? attend_backward(dy, heads, attended, calls.each)
                                : attend_backward(dy, heads, attended, calls.packed);
}

Attended attend(const HeadTensors& heads, const std::vector<AttentionCall>& calls) {
  const std::int64_t group = heads.queries.size(1), width = heads.values.size(3);
  const Tensor values = as_wide(heads.values, heads.queries);
  Bitmaps bitmaps(heads.queries.options());
  const auto run = [&](const AttentionCall& call) -> Attended {
    const auto seen = [&](const Tensor& x) {
      return part(x, call.keys).expand({-1, group, -1, -1});
    };
    const auto [out, sums] = at::_scaled_dot_product_flash_attention_for_cpu(
        part(heads.queries, call.queries), seen(heads.keys), seen(values), 0.0,
        call.filling == Filling::causal, bitmaps.of(call));
    return {cut_padding(out, width), sums};
  };
  if (is_whole(calls, heads)) return run(calls[0]);
  const auto format = heads.queries.options();
  const auto wide = format.dtype(gradient_type(heads.queries.scalar_type()));
  std::vector<std::int64_t> shape = heads.queries.sizes().vec();
  shape.back() = width;
  Attended all{at::zeros(shape, wide), {}};
  shape.pop_back();
  all.sums = at::full(shape, -std::numeric_limits<double>::infinity(), wide);
  std::int64_t fresh = 0;  // queries from here on have not been in any call yet
  for (const AttentionCall& call : calls) {
    const Attended more = run(call);
    const Tensor out = part(all.out, call.queries), sums = part(all.sums, call.queries);
    if (call.queries.begin >= fresh) {
      out.copy_(more.out);
      sums.copy_(more.sums);
    } else {
      join({out, sums}, more);
    }
    fresh = std::max(fresh, call.queries.end);
  }
  all.out = all.out.to(heads.queries.scalar_type());
  return all;
}

HeadTensors attend_backward(const Tensor& dy, const HeadTensors& heads, const Attended& attended,
                            const std::vector<AttentionCall>& calls) {
  const std::int64_t group = heads.queries.size(1), width = heads.values.size(3);
  const Tensor values = as_wide(heads.values, heads.queries);
  const Tensor wide_dy = as_wide(dy, heads.queries), out = as_wide(attended.out, heads.queries);
  Bitmaps bitmaps(heads.queries.options());
  const auto run = [&](const AttentionCall& call) -> HeadTensors {
    const auto own = [&](const Tensor& x) { return part(x, call.queries); };
    const auto seen = [&](const Tensor& x) {
      return part(x, call.keys).expand({-1, group, -1, -1});
    };
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        own(wide_dy), own(heads.queries), seen(heads.keys), seen(values), own(out),
        own(attended.sums), 0.0, call.filling == Filling::causal, bitmaps.of(call));
    return {dq, dk.sum(1, /*keepdim=*/true), cut_padding(dv.sum(1, /*keepdim=*/true), width)};
  };
  if (is_whole(calls, heads)) return run(calls[0]);
  const auto wide = gradient_type(heads.queries.scalar_type());
  const auto zeros = [&](const Tensor& x) { return at::zeros(x.sizes(), x.options().dtype(wide)); };
  HeadTensors all{zeros(heads.queries), zeros(heads.keys), zeros(heads.values)};
  for (const AttentionCall& call : calls) {
    const HeadTensors more = run(call);
    part(all.queries, call.queries).add_(more.queries);
    part(all.keys, call.keys).add_(more.keys);
    part(all.values, call.keys).add_(more.values);
  }
  const auto plain = heads.queries.scalar_type();
  return {all.queries.to(plain), all.keys.to(plain), all.values.to(plain)};
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
