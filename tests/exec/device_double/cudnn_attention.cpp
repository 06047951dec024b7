// A double of cuDNN's attention kernels behind LibTorch 2.11, for the queued device: plain
// computations for batches [b, heads, rows, width], with the checks of sdp_utils.cpp (widths,
// lengths), cuDNN's rules (16-byte alignment, contiguous width, query heads a multiple of key heads,
// diagonal from the first query and key) and what a caller must keep to because LibTorch does not
// check it:
//   * a plan is stored by the sizes and strides of queries, keys and values; the first call's
//     layouts of out, its gradient and the log-sum-exps are in it
//   * the backward pass is not deterministic
//   * calls with packed lengths build a plan each time (pytorch#191576)
// It accepts fp64, too, so that it can be compared with exact results.
// Sources: ATen/native/cudnn/MHA.cpp, ATen/native/transformers/cuda/sdp_utils.cpp of LibTorch 2.11.
#include <torch/library.h>

#include <atomic>
#include <cmath>
#include <map>
#include <mutex>

#include "exec/cuda/portable.h"
#include "tests/exec/device_double/attention_kernels.h"
#include "tests/exec/device_double/attention_math.h"
#include "tests/exec/device_double/queued_device.h"

namespace polyphony::exec::testing::queued {

namespace {

constexpr std::int64_t kWidest = 256;  // on compute capability 9.0
std::atomic<int> forward_calls{0}, backward_calls{0};

void check_layout(const Tensor& x, const Tensor& q) {
  const auto whole = [&](std::int64_t dimension) {
    return x.size(dimension) == 1 ||
           (x.stride(dimension) > 0 && x.stride(dimension) * x.element_size() % 16 == 0);
  };
  POLYPHONY_CHECK(x.dim() == 4 && x.stride(3) == 1 && whole(0) && whole(1) && whole(2) &&
                      kernels::is_aligned(x.const_data_ptr()) && x.size(3) % 8 == 0 &&
                      x.size(3) <= kWidest && x.scalar_type() == q.scalar_type() &&
                      x.device() == q.device(),
                  "heads of " << x.sizes() << " with strides " << x.strides());
}
void check_batch(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t most_q,
                 std::int64_t most_k, bool causal) {
  for (const Tensor& x : {q, k, v}) check_layout(x, q);
  POLYPHONY_CHECK(q.scalar_type() != torch::kFloat32 && q.size(0) == k.size(0) &&
                      k.sizes().slice(0, 3) == v.sizes().slice(0, 3) && q.size(3) == k.size(3) &&
                      q.size(1) % k.size(1) == 0 && most_q == q.size(2) && most_k == k.size(2) &&
                      most_q > 1 && most_k > 1,
                  "cuDNN attention of " << q.sizes() << " to " << k.sizes());
  POLYPHONY_CHECK(!causal || most_q == most_k,
                  "a diagonal from the first key is not that of the last one");
}

// [b, heads, rows, width] -> [b·rows, heads, width], a view.
Tensor rows_of(const Tensor& batch) {
  const Tensor rows = batch.transpose(1, 2).flatten(0, 1);
  POLYPHONY_CHECK(rows.is_alias_of(batch), "rows of " << batch.strides() << " are no view");
  return rows;
}
std::vector<Block> blocks(std::int64_t batch, std::int64_t queries, std::int64_t keys,
                          bool causal) {
  const std::int64_t far = queries + keys;
  std::vector<Block> all;
  for (std::int64_t b = 0; b < batch; ++b)
    all.push_back(
        {b * queries, queries, b * keys, keys, band(queries, keys, -far, causal ? 0 : far)});
  return all;
}

using Numbers = std::vector<std::int64_t>;
void append(Numbers& numbers, const Tensor& x) {
  numbers.insert(numbers.end(), x.sizes().begin(), x.sizes().end());
  numbers.insert(numbers.end(), x.strides().begin(), x.strides().end());
}
// Throws if a plan of these inputs was stored with other layouts.
void check_plan(bool backward, bool causal, const std::vector<Tensor>& inputs,
                const std::vector<Tensor>& others) {
  static std::mutex mutex;
  static std::map<Numbers, Numbers> plans;
  Numbers key{backward, causal, static_cast<std::int64_t>(inputs[0].scalar_type())}, layouts;
  for (const Tensor& x : inputs) append(key, x);
  for (const Tensor& x : others) append(layouts, x);
  const std::scoped_lock lock(mutex);
  const auto [at, fresh] = plans.emplace(std::move(key), layouts);
  POLYPHONY_CHECK(fresh || at->second == layouts,
                  "cuDNN's plan for " << inputs[0].sizes() << " is for other layouts");
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>
cudnn_forward(const Tensor& q, const Tensor& k, const Tensor& v, const Given& bias,
              const Given& query_starts, const Given& key_starts, std::int64_t most_q,
              std::int64_t most_k, bool with_sums, double dropout, bool causal, bool debug,
              std::optional<double> scale) {
  POLYPHONY_CHECK(!bias && !query_starts && !key_starts && with_sums && dropout == 0 && !debug,
                  "cuDNN attention's other uses are not in this double");
  check_batch(q, k, v, most_q, most_k, causal);
  POLYPHONY_CHECK(q.size(3) == v.size(3), "values of another width are not in this double");
  ++forward_calls;
  const Tensor out = at::empty_like(q);
  const Tensor sums = at::empty({q.size(0), q.size(1), q.size(2), 1}, q.options().dtype(wide(q)));
  check_plan(false, causal, {q, k, v}, {out, sums});
  const double by = scale.value_or(1 / std::sqrt(double(q.size(3))));
  const auto seen = seen_by_kernels;
  queue(q, "cuDNN attention",
        [=, q = rows_of(seen(q)), k = rows_of(seen(k)), v = rows_of(seen(v)),
         out = rows_of(seen(out)), sums = seen(sums)] {
          const std::vector<Block> all = blocks(sums.size(0), most_q, most_k, causal);
          forward(q, k, v, all, by, kInfinity, out,
                  [&](std::size_t b) { return sums[std::int64_t(b)].squeeze(2); });
        });
  const Tensor state = at::empty({}, q.options().dtype(torch::kInt64));
  return {out, sums, Tensor(), Tensor(), most_q, most_k, state, state, Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> cudnn_backward(
    const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
    const Tensor& sums, const Tensor& seed, const Tensor& offset, const Tensor& bias,
    const Tensor& query_starts, const Tensor& key_starts, std::int64_t most_q, std::int64_t most_k,
    double dropout, bool causal, std::optional<double> scale) {
  POLYPHONY_CHECK(!bias.defined() && !query_starts.defined() && !key_starts.defined() &&
                      dropout == 0 && !at::globalContext().deterministicAlgorithms(),
                  "cuDNN attention's other uses are not in this double");
  check_batch(q, k, v, most_q, most_k, causal);
  for (const Tensor& x : {dy, out}) {
    check_layout(x, q);
    POLYPHONY_CHECK(x.sizes() == q.sizes(), "gradients of " << x.sizes() << " for " << q.sizes());
  }
  POLYPHONY_CHECK(sums.is_contiguous() && sums.scalar_type() == wide(q) &&
                      sums.sizes() == at::IntArrayRef({q.size(0), q.size(1), q.size(2), 1}),
                  "log-sum-exps of " << sums.sizes());
  for (const Tensor& x : {seed, offset})
    POLYPHONY_CHECK(x.defined() && x.scalar_type() == torch::kInt64 && x.device() == q.device(),
                    "no state of the random numbers");
  ++backward_calls;
  const Gradients made{at::empty_like(q), at::empty_like(k), at::empty_like(v)};
  check_plan(true, causal, {q, k, v}, {out, dy, sums, made.q, made.k, made.v});
  const double by = scale.value_or(1 / std::sqrt(double(q.size(3))));
  const auto seen = seen_by_kernels;
  const auto rows = [&](const Tensor& x) { return rows_of(seen(x)); };
  const Gradients filled{rows(made.q), rows(made.k), rows(made.v)};
  queue(q, "cuDNN attention, backward",
        [=, dy = rows(dy), q = rows(q), k = rows(k), v = rows(v), out = rows(out),
         sums = seen(sums)] {
          backward(
              dy, q, k, v, out, blocks(sums.size(0), most_q, most_k, causal), by,
              [&](std::size_t b) { return sums[std::int64_t(b)].squeeze(2); }, filled);
        });
  return {made.q, made.k, made.v};
}

}  // namespace

CudnnCalls take_cudnn_calls() { return {forward_calls.exchange(0), backward_calls.exchange(0)}; }

namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_cudnn_attention_forward", &cudnn_forward);
  library.impl("_cudnn_attention_backward", &cudnn_backward);
}

}  // namespace

}  // namespace polyphony::exec::testing::queued
