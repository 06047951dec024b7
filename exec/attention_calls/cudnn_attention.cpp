#include "exec/attention_calls/cudnn_attention.h"

#include <cmath>
#include <mutex>
#include <set>

#include "exec/attention_calls/head_width.h"
#include "exec/cuda/portable.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

constexpr std::int64_t kAlignment = 16;  // bytes

std::int64_t batch_of(const PackedCall& call) {
  return static_cast<std::int64_t>(call.parts.size());
}

bool is_aligned(const Tensor& rows) {
  const auto whole = [&](std::int64_t elements) {
    return elements * rows.element_size() % kAlignment == 0;
  };
  return kernels::is_aligned(rows.const_data_ptr()) && whole(rows.stride(0)) &&
         whole(rows.stride(1));
}
// [rows, heads, width] -> [rows, heads, wider], aligned.
Tensor as_input(const Tensor& x, std::int64_t width) {
  const Tensor wide = as_wide(x, width);
  return is_aligned(wide) ? wide : wide.clone(at::MemoryFormat::Contiguous);
}
// [b·rows, heads, width] -> [b, heads, rows, width], a view.
Tensor as_batch(const Tensor& rows, std::int64_t batch) {
  return rows.unflatten(0, {batch, -1}).transpose(1, 2);
}
Tensor as_rows(const Tensor& batch) { return batch.transpose(1, 2).flatten(0, 1); }

PackedHeads as_input(const PackedHeads& heads, const PackedCall& call) {
  const std::int64_t width = aligned_width(heads.queries.size(2)), batch = batch_of(call);
  const auto made = [&](const Tensor& x) { return as_batch(as_input(x, width), batch); };
  return {made(heads.queries), made(heads.keys), made(heads.values)};
}
bool is_lower_triangular(const PackedCall& call) { return call.right == 0; }

// The process-wide list of shapes. LibTorch's caches of plans belong to the process, too.
struct Planned {
  using Shape = std::vector<std::int64_t>;
  std::mutex mutex;
  std::set<Shape> shapes;
};
Planned& planned_shapes() {
  static Planned made;
  return made;
}

}  // namespace

bool has_cudnn_plan(const PackedHeads& heads, const PackedCall& call) {
  Planned::Shape shape{static_cast<std::int64_t>(heads.queries.scalar_type()), batch_of(call),
                       is_lower_triangular(call) ? 1 : 0};
  for (const Tensor& x : {heads.queries, heads.keys, heads.values}) {
    shape.insert(shape.end(), x.sizes().begin(), x.sizes().end());
    shape.insert(shape.end(), x.strides().begin(), x.strides().end());
  }
  Planned& all = planned_shapes();
  const std::scoped_lock lock(all.mutex);
  if (all.shapes.contains(shape)) return true;
  if (all.shapes.size() >= kMostCudnnPlans) return false;
  all.shapes.insert(std::move(shape));
  return true;
}

void forget_cudnn_plans() {
  const std::scoped_lock lock(planned_shapes().mutex);
  planned_shapes().shapes.clear();
}

PackedOut cudnn_attention(const PackedHeads& given, const PackedCall& call) {
  const PackedHeads heads = as_input(given, call);
  const auto made = at::_cudnn_attention_forward(
      heads.queries, heads.keys, heads.values, /*attn_bias=*/{}, /*cum_seq_q=*/{}, /*cum_seq_k=*/{},
      heads.queries.size(2), heads.keys.size(2), /*compute_log_sumexp=*/true, /*dropout_p=*/0.0,
      is_lower_triangular(call), /*return_debug_mask=*/false, scale_of(given.queries));
  const Tensor sums = std::get<1>(made).squeeze(3);  // [b, heads, n]
  return {as_narrow(as_rows(std::get<0>(made)), given.values.size(2)),
          sums.transpose(0, 1).flatten(1)};
}

PackedHeads cudnn_attention_backward(const Tensor& dy, const PackedHeads& given,
                                     const PackedOut& attended, const PackedCall& call) {
  const PackedHeads heads = as_input(given, call);
  const std::int64_t width = heads.queries.size(3), batch = batch_of(call);
  const auto row_by_row = [&](const Tensor& x) {
    const Tensor rows = as_wide(x, width).contiguous();
    return as_batch(is_aligned(rows) ? rows : rows.clone(), batch);
  };
  const Tensor sums = attended.sums.unflatten(1, {batch, -1}).transpose(0, 1).contiguous();
  // Only dropout would read it; on compute capability 10.0 LibTorch converts it to int64.
  const Tensor state = at::empty({}, heads.queries.options().dtype(torch::kInt64));
  const auto [dq, dk, dv] = at::_cudnn_attention_backward(
      row_by_row(dy), heads.queries, heads.keys, heads.values, row_by_row(attended.out),
      sums.unsqueeze(3), state, state, /*attn_bias=*/{}, /*cum_seq_q=*/{}, /*cum_seq_k=*/{},
      heads.queries.size(2), heads.keys.size(2), /*dropout_p=*/0.0, is_lower_triangular(call),
      scale_of(given.queries));
  return {as_narrow(as_rows(dq), given.queries.size(2)), as_narrow(as_rows(dk), given.keys.size(2)),
          as_narrow(as_rows(dv), given.values.size(2))};
}

}  // namespace polyphony::exec
