#include "exec/attention/attention.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "exec/attention/head_rows.h"
#include "exec/attention/row_attention.h"
#include "exec/autograd/saved_call.h"
#include "exec/autograd/wide_gradient.h"
#include "exec/on_device.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Bucket = SequencePlan::Bucket;

namespace {

// A bucket takes sequences of at least 3/4 of its longest length, or at most 16 rows shorter: then
// less than half of its score matrix is padding, and a batch of short texts remains one kernel
// call.
bool fits_bucket(std::int64_t longest, std::int64_t length) {
  return longest - length <= std::max<std::int64_t>(16, longest / 4);
}

struct HeadsCall : torch::CustomClassHolder {
  Bucket bucket;
  HeadShape heads;
  HeadsCall(Bucket bucket_, const HeadShape& heads_) : bucket(std::move(bucket_)), heads(heads_) {}
};

class ToHeads : public torch::autograd::Function<ToHeads> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& qkv,
                               const c10::intrusive_ptr<HeadsCall>& call) {
    save_call(context, call);
    const HeadTensors parts = split_heads(qkv, call->bucket, call->heads);
    return {parts.queries, parts.keys, parts.values};
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<HeadsCall>(context);
    return {join_gradients({gradients[0], gradients[1], gradients[2]}, call->bucket, call->heads),
            Tensor()};
  }
};

class FromHeads : public torch::autograd::Function<FromHeads> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& out,
                        const c10::intrusive_ptr<HeadsCall>& call) {
    save_call(context, call);
    return join_outputs(out, call->bucket, call->heads);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<HeadsCall>(context);
    return {split_outputs(gradients[0], call->bucket, call->heads), Tensor()};
  }
};

class PermuteRows : public torch::autograd::Function<PermuteRows> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& order,
                        const Tensor& inverse) {
    context->saved_data["inverse"] = inverse;
    return x.index_select(0, order);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients[0].index_select(0, context->saved_data["inverse"].toTensor()), Tensor(),
            Tensor()};
  }
};

// Returns the sequence numbers of each bucket; sequences without rows are in no bucket.
std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<std::int64_t>& lengths,
                                                     bool pad) {
  std::vector<std::size_t> sorted;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > 0) sorted.push_back(i);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<std::size_t>> buckets;
  for (const std::size_t i : sorted) {
    const std::int64_t longest = buckets.empty() ? -1 : lengths[buckets.back().front()];
    const bool joins =
        !buckets.empty() && (longest == lengths[i] || (pad && fits_bucket(longest, lengths[i])));
    if (!joins) buckets.emplace_back();
    buckets.back().push_back(i);
  }
  if (buckets.size() != 1) return buckets;
  // A single bucket keeps the packed order, so that no rows need to move; the caller then has to
  // find its longest sequence again.
  std::sort(buckets[0].begin(), buckets[0].end());
  return buckets;
}

Bucket make_bucket(const std::vector<std::int64_t>& lengths,
                   const std::vector<std::size_t>& members, torch::Device device) {
  Bucket bucket;
  bucket.count = static_cast<std::int64_t>(members.size());
  for (const std::size_t i : members) {
    bucket.longest = std::max(bucket.longest, lengths[i]);
    bucket.rows += lengths[i];
  }
  if (bucket.rows == bucket.count * bucket.longest) return bucket;
  std::vector<std::int64_t> padded(static_cast<std::size_t>(bucket.count * bucket.longest),
                                   bucket.rows),
      valid;
  std::int64_t row = 0;
  for (std::size_t n = 0; n < members.size(); ++n) {
    for (std::int64_t i = 0; i < lengths[members[n]]; ++i) {
      const std::int64_t place = static_cast<std::int64_t>(n) * bucket.longest + i;
      padded[static_cast<std::size_t>(place)] = row++;
      valid.push_back(place);
    }
  }
  bucket.padded = indices_on(padded, device);
  bucket.valid = indices_on(valid, device);
  return bucket;
}

SequencePlan plan_buckets(const std::vector<std::int64_t>& lengths, bool causal,
                          torch::Device device) {
  SequencePlan plan;
  plan.causal = causal;
  std::vector<std::int64_t> first_row(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), first_row.begin(), std::int64_t{0});
  std::vector<std::int64_t> order;
  for (const std::vector<std::size_t>& members : assign_buckets(lengths, causal)) {
    plan.buckets.push_back(make_bucket(lengths, members, device));
    for (const std::size_t i : members) {
      for (std::int64_t k = 0; k < lengths[i]; ++k) order.push_back(first_row[i] + k);
    }
  }
  if (std::is_sorted(order.begin(), order.end())) return plan;
  std::vector<std::int64_t> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  plan.order = indices_on(order, device);
  plan.inverse = indices_on(inverse, device);
  return plan;
}

}  // namespace

TokenMask mask_of(const std::vector<std::int64_t>& lengths, bool causal) {
  TokenMask mask;
  for (const std::int64_t length : lengths)
    mask.add(length, mask.groups, causal, {mask.groups, mask.groups + 1});
  return mask;
}

SequencePlan plan_side_by_side(const std::vector<std::int64_t>& lengths, torch::Device device) {
  return plan_buckets(lengths, true, device);
}

SequencePlan plan_images(const std::vector<std::int64_t>& lengths, torch::Device device) {
  return device.is_cpu() ? plan_buckets(lengths, false, device)
                         : plan_masked(mask_of(lengths, false), 0, 0, device);
}

void add_rotation(Bucket& bucket, const Tensor& angles, torch::Dtype dtype) {
  const torch::Dtype table = gradient_type(dtype);
  const Tensor angle = pad_rows(angles, bucket);  // [count·L, D/2]
  const Tensor cosine = angle.cos(), sine = angle.sin();
  const std::vector<std::int64_t> shape = {bucket.count, 1, 1, bucket.longest, 2 * angle.size(1)};
  bucket.cosine = at::cat({cosine, cosine}, 1).to(table).view(shape);
  bucket.sine = at::cat({-sine, sine}, 1).to(table).view(shape);
}

void add_rotation(SequencePlan& plan, const Tensor& angles, torch::Dtype dtype) {
  const Tensor ordered = plan.order.defined() ? angles.index_select(0, plan.order) : angles;
  std::int64_t first = 0;
  for (Bucket& bucket : plan.buckets) {
    add_rotation(bucket, ordered.narrow(0, first, bucket.rows), dtype);
    first += bucket.rows;
  }
}

SequencePlan plan_causal(const std::vector<std::int64_t>& lengths, torch::Device device,
                         std::int64_t window, std::int64_t row_split) {
  if (!device.is_cpu()) return plan_masked(mask_of(lengths, true), window, row_split, device);
  SequencePlan plan = plan_buckets(lengths, true, device);
  plan.window = window;
  plan.row_split = row_split;
  return plan;
}

SequencePlan plan_causal(const std::vector<std::int64_t>& lengths, const Tensor& angles,
                         torch::Dtype dtype, std::int64_t window, std::int64_t row_split) {
  SequencePlan plan = plan_causal(lengths, angles.device(), window, row_split);
  add_rotation(plan, angles, dtype);
  return plan;
}

Bucket one_sequence(std::int64_t rows) {
  Bucket bucket;
  bucket.count = 1;
  bucket.rows = bucket.longest = rows;
  return bucket;
}

SequencePlan plan_masked(const TokenMask& mask, std::int64_t window, std::int64_t row_split,
                         torch::Device device) {
  SequencePlan plan;
  const Interval rows{0, mask.tokens()};
  if (rows.size() == 0) return plan;
  plan.buckets.push_back(one_sequence(rows.size()));
  plan.calls = std::make_shared<const AttentionCalls>(
      calls_for(rectangles(mask, window), {rows}, key_pieces(rows.size(), row_split), device));
  return plan;
}

std::shared_ptr<const AttentionCalls> calls_of(const SequencePlan& plan, const Bucket& bucket) {
  if (plan.calls) return plan.calls;
  return std::make_shared<const AttentionCalls>(
      AttentionCalls{plan_calls(bucket.longest, plan.causal, plan.window, plan.row_split), {}});
}

HeadTensors to_heads(const Tensor& qkv, const Bucket& bucket, const HeadShape& heads) {
  const variable_list parts = ToHeads::apply(qkv, c10::make_intrusive<HeadsCall>(bucket, heads));
  return {parts[0], parts[1], parts[2]};
}

Tensor from_heads(const Tensor& out, const Bucket& bucket, const HeadShape& heads) {
  return FromHeads::apply(out, c10::make_intrusive<HeadsCall>(bucket, heads));
}

Tensor permute_rows(const Tensor& x, const Tensor& order, const Tensor& inverse) {
  return PermuteRows::apply(x, order, inverse);
}

Tensor attention(const Tensor& qkv, const SequencePlan& plan, const HeadShape& heads,
                 const Tensor& sinks) {
  const std::int64_t width = heads.kv_heads * heads.group * heads.width;
  if (plan.buckets.empty()) return qkv.narrow(1, 0, width);  // no rows; keeps the graph connected
  return row_attention(qkv, plan, heads, sinks);
}

Tensor attention(const std::vector<Tensor>& rows, const SequencePlan& plan,
                 const std::shared_ptr<const HeadMaker>& maker) {
  const HeadShape out = maker->out();
  if (plan.buckets.empty()) return at::cat(rows, 1).narrow(1, 0, out.kv_heads * out.width);
  return row_attention(rows, plan, maker);
}

}  // namespace polyphony::exec
