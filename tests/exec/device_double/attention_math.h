// What the doubles of a GPU's attention kernels compute: plain sums, rectangle by rectangle
// (tests/exec/device_double/attention_kernels.cpp, cudnn_attention.cpp).
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/exec/device_double/attention_blocks.h"
#include "tests/exec/device_double/queued_device.h"

namespace polyphony::exec::testing::queued {

using Given = std::optional<Tensor>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline torch::Dtype wide(const Tensor& x) {
  return x.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
}
// Rows of [rows, heads, width] as [heads, rows, width]; each of the H heads has its own.
inline Tensor by_head(const Tensor& x, std::int64_t first, std::int64_t rows, std::int64_t heads) {
  return x.narrow(0, first, rows)
      .to(wide(x))
      .repeat_interleave(heads / x.size(1), 1)
      .transpose(0, 1);
}
inline Tensor scores(const Tensor& q, const Tensor& k, const Tensor& visible, double scale) {
  return (torch::matmul(q, k.transpose(1, 2)) * scale)
      .masked_fill(visible.logical_not(), -kInfinity);
}

// out [rows, H, Dv]; sums(block) is where its log-sum-exps [H, queries] go.
template <class Sums>
void forward(const Tensor& q, const Tensor& k, const Tensor& v, const std::vector<Block>& all,
             double scale, double unseen, const Tensor& out, Sums sums) {
  const std::int64_t heads = q.size(1);
  for (std::size_t b = 0; b < all.size(); ++b) {
    const Block& block = all[b];
    const Tensor s = scores(by_head(q, block.query, block.queries, heads),
                            by_head(k, block.key, block.keys, heads), block.visible, scale);
    const Tensor total = s.logsumexp(2), blind = total.isneginf();
    const Tensor weights = (s - total.masked_fill(blind, 0).unsqueeze(2)).exp();
    out.narrow(0, block.query, block.queries)
        .copy_(torch::matmul(weights, by_head(v, block.key, block.keys, heads)).transpose(0, 1));
    sums(b).copy_(total.masked_fill(blind, unseen));
  }
}

struct Gradients {
  Tensor q, k, v;
};
template <class Sums>
void backward(const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v,
              const Tensor& out, const std::vector<Block>& all, double scale, Sums sums,
              const Gradients& made) {
  const std::int64_t heads = q.size(1);
  const auto put = [&](const Tensor& into, std::int64_t first, const Tensor& by_heads) {
    into.narrow(0, first, by_heads.size(1))
        .copy_(by_heads.transpose(0, 1).unflatten(1, {into.size(1), heads / into.size(1)}).sum(2));
  };
  for (std::size_t b = 0; b < all.size(); ++b) {
    const Block& block = all[b];
    const auto own = [&](const Tensor& x) { return by_head(x, block.query, block.queries, heads); };
    const auto other = [&](const Tensor& x) { return by_head(x, block.key, block.keys, heads); };
    const Tensor p = (scores(own(q), other(k), block.visible, scale) - sums(b).unsqueeze(2)).exp();
    const Tensor dp = torch::matmul(own(dy), other(v).transpose(1, 2));
    const Tensor ds = p * (dp - (own(dy) * own(out)).sum(2, true)) * scale;
    put(made.q, block.query, torch::matmul(ds, other(k)));
    put(made.k, block.key, torch::matmul(ds.transpose(1, 2), own(q)));
    put(made.v, block.key, torch::matmul(p.transpose(1, 2), own(dy)));
  }
}

// Queues `run` as a kernel of this name on the current stream of the device.
template <class Run>
void queue(const Tensor& like, const std::string& name, Run run) {
  queue_on_current(
      like.device(),
      [run] {
        const at::AutoDispatchBelowAutograd kernels_alone;
        run();
      },
      name);
}

}  // namespace polyphony::exec::testing::queued
