// A double of a GPU's attention kernels for the queued device: plain computations, rectangle by
// rectangle, with the same checks of formats, shapes and strides as in LibTorch 2.11. They accept
// any format, so that fp64 can be compared with exact results.
//
// They also imitate how the real kernels treat bounds: flash takes a bound of at least the longest
// keys as absent, and an absent bound next to another one as a bound of that length; efficient pads
// log-sum-exps to 32 rows, and its backward pass ignores the diagonal's offset in windows.
// Sources: ATen/native/transformers/cuda/attention.cu, attention_backward.cu, flash_attn/ and mem_eff_attention/.
#include "tests/exec/device_double/attention_kernels.h"

#include <torch/library.h>

#include <atomic>
#include <cmath>

#include "tests/exec/device_double/attention_math.h"
#include "tests/exec/device_double/queued_device.h"
#include "tests/exec/device_double/streams.h"

namespace polyphony::exec::testing::queued {

namespace {

void check_starts(const Tensor& starts, const Tensor& q) {
  POLYPHONY_CHECK(starts.scalar_type() == torch::kInt32 && starts.is_contiguous() &&
                      starts.dim() == 1 && starts.numel() > 1 && starts.device() == q.device(),
                  "cumulative lengths are no int32 of the device");
}
void check_inputs(const Tensor& q, const Tensor& k, const Tensor& v) {
  for (const Tensor& x : {q, k, v})
    POLYPHONY_CHECK(x.stride(-1) == 1 && x.scalar_type() == q.scalar_type() &&
                        x.device() == q.device() && x.size(-1) % 8 == 0,
                    "heads of " << x.sizes() << " with strides " << x.strides());
}
void check_flash(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& query_starts,
                 const Tensor& key_starts) {
  check_inputs(q, k, v);
  check_starts(query_starts, q);
  check_starts(key_starts, q);
  const std::int64_t width = q.size(2);
  POLYPHONY_CHECK(q.dim() == 3 && width <= 256 && q.size(1) % k.size(1) == 0 &&
                      k.sizes() == v.sizes() && k.size(2) == width &&
                      q.scalar_type() != torch::kFloat32 &&
                      query_starts.numel() == key_starts.numel(),
                  "flash attention of " << q.sizes() << " to " << k.sizes());
}
void check_efficient(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& query_starts,
                     const Tensor& key_starts, std::int64_t mask, Number window) {
  check_inputs(q, k, v);
  check_starts(query_starts, q);
  check_starts(key_starts, q);
  POLYPHONY_CHECK(q.dim() == 4 && q.size(0) == 1 && k.size(0) == 1 && v.size(0) == 1 &&
                      q.size(2) == k.size(2) && q.size(2) == v.size(2) && q.size(3) == k.size(3) &&
                      k.size(1) == v.size(1) && query_starts.numel() == key_starts.numel(),
                  "efficient attention of " << q.sizes() << " to " << k.sizes());
  POLYPHONY_CHECK(mask == 0 || mask == 2, "no such mask in this double: " << mask);
  POLYPHONY_CHECK(!window || mask == 2, "a window without a causal mask");
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_forward(
    const Tensor& q, const Tensor& k, const Tensor& v, const Given& query_starts,
    const Given& key_starts, std::int64_t most_q, std::int64_t most_k, double dropout, bool causal,
    bool debug, std::optional<double> scale, Number left, Number right, const Given& used,
    const Given& slopes) {
  POLYPHONY_CHECK(query_starts && key_starts && dropout == 0 && !debug && !used && !slopes,
                  "flash attention's other uses are not in this double");
  check_flash(q, k, v, *query_starts, *key_starts);
  const Tensor out = at::empty_like(q);
  const Tensor sums = at::empty({q.size(1), q.size(0)}, q.options().dtype(wide(q)));
  const auto visible = flash_band(causal, left, right, most_q, most_k);
  const double by = scale.value_or(1 / std::sqrt(double(q.size(2))));
  const auto seen = seen_by_kernels;
  queue(q, "flash attention",
        [=, q = seen(q), k = seen(k), v = seen(v), starts = seen(*query_starts),
         others = seen(*key_starts), out = seen(out), sums = seen(sums)] {
          const std::vector<Block> all = blocks(starts, others, most_q, most_k, visible);
          forward(q, k, v, all, by, kInfinity, out,
                  [&](std::size_t b) { return sums.narrow(1, all[b].query, all[b].queries); });
        });
  const Tensor state = at::empty({2}, q.options().dtype(torch::kUInt64));
  return {out, sums, state, at::empty({0}, state.options()), at::empty({0}, q.options())};
}

// GPUs add the parts of a query's gradient in any order, unless LibTorch is told to be deterministic.
std::atomic<bool> ordered{false};

std::tuple<Tensor, Tensor, Tensor> flash_backward(
    const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
    const Tensor& sums, const Tensor& query_starts, const Tensor& key_starts, std::int64_t most_q,
    std::int64_t most_k, double dropout, bool causal, const Tensor& state, const Tensor& unused,
    std::optional<double> scale, Number left, Number right) {
  ordered = at::globalContext().deterministicAlgorithms() &&
            !at::globalContext().deterministicAlgorithmsWarnOnly();
  check_flash(q, k, v, query_starts, key_starts);
  POLYPHONY_CHECK(dropout == 0 && state.defined() && unused.defined() && dy.sizes() == q.sizes() &&
                      out.sizes() == q.sizes() && dy.scalar_type() == q.scalar_type() &&
                      out.scalar_type() == q.scalar_type(),
                  "gradients of " << dy.sizes() << " for " << q.sizes());
  POLYPHONY_CHECK(sums.is_contiguous() && sums.scalar_type() == wide(q) &&
                      sums.sizes() == at::IntArrayRef({q.size(1), q.size(0)}),
                  "log-sum-exps of " << sums.sizes());
  const Gradients made{at::empty_like(q), at::empty_like(k), at::empty_like(v)};
  const auto visible = flash_band(causal, left, right, most_q, most_k);
  const double by = scale.value_or(1 / std::sqrt(double(q.size(2))));
  const auto seen = seen_by_kernels;
  const Gradients filled{seen(made.q), seen(made.k), seen(made.v)};
  const Tensor slope = dy.contiguous(), whole = out.contiguous();
  queue(q, "flash attention, backward",
        [=, dy = seen(slope), q = seen(q), k = seen(k), v = seen(v), out = seen(whole),
         sums = seen(sums), starts = seen(query_starts), others = seen(key_starts)] {
          const std::vector<Block> all = blocks(starts, others, most_q, most_k, visible);
          backward(
              dy, q, k, v, out, all, by,
              [&](std::size_t b) { return sums.narrow(1, all[b].query, all[b].queries); }, filled);
        });
  return {made.q, made.k, made.v};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt> efficient_forward(
    const Tensor& q, const Tensor& k, const Tensor& v, const Given& bias, const Given& query_starts,
    const Given& key_starts, Number most_q, Number most_k, double dropout, std::int64_t mask,
    bool with_sums, std::optional<double> scale, const Given& used, Number window) {
  POLYPHONY_CHECK(
      query_starts && key_starts && most_q && !bias && dropout == 0 && with_sums && !used,
      "efficient attention's other uses are not in this double");
  check_efficient(q, k, v, *query_starts, *key_starts, mask, window);
  const std::int64_t padded = (*most_q + 31) / 32 * 32;
  const Tensor out = at::empty({1, q.size(1), q.size(2), v.size(3)}, q.options());
  const Tensor sums =
      at::empty({query_starts->numel() - 1, q.size(2), padded}, q.options().dtype(wide(q)));
  const double by = scale.value_or(1 / std::sqrt(double(q.size(3))));
  const auto seen = seen_by_kernels;
  queue(q, "efficient attention",
        [=, q = seen(q)[0], k = seen(k)[0], v = seen(v)[0], starts = seen(*query_starts),
         others = seen(*key_starts), out = seen(out)[0], sums = seen(sums)] {
          const std::vector<Block> all =
              blocks(starts, others, *most_q, k.size(0), efficient_band(mask, window, false));
          forward(q, k, v, all, by, 0, out, [&](std::size_t b) {
            return sums[std::int64_t(b)].narrow(1, 0, all[b].queries);
          });
        });
  const Tensor number = torch::empty({}, torch::kInt64);
  return {out, sums, number, number, *most_q, most_k.value_or(0)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_backward(
    const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v, const Given& bias,
    const Tensor& out, const Given& query_starts, const Given& key_starts, std::int64_t most_q,
    std::int64_t most_k, const Tensor& sums, double dropout, const Tensor& /*seed*/,
    const Tensor& /*offset*/, std::int64_t mask, bool of_bias, std::optional<double> scale,
    Number splits, Number window, bool shared) {
  POLYPHONY_CHECK(
      query_starts && key_starts && !bias && dropout == 0 && !of_bias && !splits && !shared,
      "efficient attention's other uses are not in this double");
  check_efficient(q, k, v, *query_starts, *key_starts, mask, window);
  POLYPHONY_CHECK(0 < most_q && most_q <= q.size(1) && 0 < most_k && most_k <= k.size(1) &&
                      out.is_contiguous() && dy.sizes() == out.sizes() && dy.size(3) == v.size(3) &&
                      sums.size(2) % 8 == 0 && sums.size(0) == query_starts->numel() - 1 &&
                      sums.stride(2) == 1,
                  "gradients of " << dy.sizes() << ", log-sum-exps of " << sums.sizes());
  const Gradients made{at::empty(q.sizes(), q.options()), at::empty(k.sizes(), k.options()),
                       at::empty(v.sizes(), v.options())};
  const double by = scale.value_or(1 / std::sqrt(double(q.size(3))));
  const auto seen = seen_by_kernels;
  const Gradients filled{seen(made.q)[0], seen(made.k)[0], seen(made.v)[0]};
  const Tensor slope = dy.contiguous();
  queue(q, "efficient attention, backward",
        [=, dy = seen(slope)[0], q = seen(q)[0], k = seen(k)[0], v = seen(v)[0], out = seen(out)[0],
         sums = seen(sums), starts = seen(*query_starts), others = seen(*key_starts)] {
          const std::vector<Block> all =
              blocks(starts, others, most_q, most_k, efficient_band(mask, window, true));
          backward(
              dy, q, k, v, out, all, by,
              [&](std::size_t b) { return sums[std::int64_t(b)].narrow(1, 0, all[b].queries); },
              filled);
        });
  return {made.q, made.k, made.v, Tensor()};
}

}  // namespace

bool summed_in_order() { return ordered; }

namespace {

TORCH_LIBRARY_IMPL(aten, POLYPHONY_QUEUED, library) {
  library.impl("_flash_attention_forward", &flash_forward);
  library.impl("_flash_attention_backward", &flash_backward);
  library.impl("_efficient_attention_forward", &efficient_forward);
  library.impl("_efficient_attention_backward", &efficient_backward);
}

}  // namespace

}  // namespace polyphony::exec::testing::queued
