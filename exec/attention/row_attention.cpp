#include "exec/attention/row_attention.h"

#include <optional>
#include <utility>

#include "exec/attention/head_rows.h"
#include "exec/attention_calls/heads_attention.h"
#include "exec/autograd/saved_call.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Bucket = SequencePlan::Bucket;

namespace {

// Converts between [count·K, g, L] and [rows, K, g]. Padding queries are zero, so a log-sum-exp of
// zero for them has no effect.
Tensor sums_to_rows(const Tensor& sums, const Bucket& bucket, const HeadShape& heads) {
  const Tensor rows = sums.reshape({bucket.count, heads.kv_heads, heads.group, bucket.longest})
                          .permute({0, 3, 1, 2})
                          .reshape({bucket.count * bucket.longest, heads.kv_heads * heads.group});
  return unpad_rows(rows, bucket);
}
Tensor sums_of_rows(const Tensor& rows, const Bucket& bucket, const HeadShape& heads) {
  return pad_rows(rows, bucket)
      .reshape({bucket.count, bucket.longest, heads.kv_heads, heads.group})
      .permute({0, 2, 1, 3})
      .reshape({bucket.count * heads.kv_heads, bucket.longest, heads.group})
      .transpose(1, 2);
}

// The rows from which heads are made, and their order by bucket.
struct RowsCall : torch::CustomClassHolder {
  SequencePlan plan;
  HeadShape heads;                         // of the output
  std::shared_ptr<const HeadMaker> maker;  // null: heads are made from qkv
  std::vector<Tensor> rows;                // qkv [T, K·(g+2)·D], or what the maker reads
  Tensor sinks;                            // [K·g]; undefined: none
  Tensor out, sums;                        // [T, K·g·D], [T, K·g]: packed order; sums: bucket order
  RowsCall(SequencePlan plan_, const HeadShape& heads_, std::shared_ptr<const HeadMaker> maker_)
      : plan(std::move(plan_)), heads(heads_), maker(std::move(maker_)) {}
  // Reorders rows bucket after bucket, and back.
  Tensor ordered(const Tensor& x) const {
    return plan.order.defined() ? x.index_select(0, plan.order) : x;
  }
  Tensor packed(const std::vector<Tensor>& parts) const {
    const Tensor x = parts.size() == 1 ? parts[0] : at::cat(parts);
    return plan.order.defined() ? x.index_select(0, plan.inverse) : x;
  }
  // Calls use(bucket, the bucket's part of rows in bucket order) for every bucket.
  template <class Use>
  void each_bucket(Use use) const {
    std::int64_t first = 0;
    for (const Bucket& bucket : plan.buckets) {
      use(bucket, [&](const Tensor& x) { return x.narrow(0, first, bucket.rows); });
      first += bucket.rows;
    }
  }
  HeadTensors split(const std::vector<Tensor>& part, const Bucket& bucket) const {
    return maker ? maker->heads(part, bucket) : split_heads(part[0], bucket, heads);
  }
};

template <class Part>
std::vector<Tensor> parts_of(const std::vector<Tensor>& rows, Part part) {
  std::vector<Tensor> parts;
  for (const Tensor& x : rows) parts.push_back(part(x));
  return parts;
}

// Propagates gradients through the HeadMaker, with its own autograd graph.
std::vector<Tensor> made_gradients(const std::vector<Tensor>& rows, const HeadTensors& heads,
                                   const HeadTensors& gradients) {
  torch::autograd::backward({heads.queries, heads.keys, heads.values},
                            {gradients.queries, gradients.keys, gradients.values});
  std::vector<Tensor> all;
  for (const Tensor& x : rows) all.push_back(x.grad());
  return all;
}

class RowAttention : public torch::autograd::Function<RowAttention> {
 public:
  static Tensor forward(AutogradContext* context, at::TensorList rows,
                        const std::optional<Tensor>& /*sinks*/,
                        const c10::intrusive_ptr<RowsCall>& call) {
    save_call(context, call);
    const HeadShape& heads = call->heads;
    std::vector<Tensor> ordered, outs, sums;
    for (const Tensor& x : rows) ordered.push_back(call->ordered(x));
    call->each_bucket([&](const Bucket& bucket, auto part) {
      Attended made =
          attend(call->split(parts_of(ordered, part), bucket), *calls_of(call->plan, bucket));
      if (call->sinks.defined()) add_sinks(made, sinks_of(call->sinks, bucket.count, heads));
      outs.push_back(join_outputs(made.out, bucket, heads));
      sums.push_back(sums_to_rows(made.sums, bucket, heads));
    });
    Tensor y = call->packed(outs);
    for (const Tensor& x : rows) call->rows.push_back(x.detach());
    call->out = y.detach();
    call->sums = sums.size() == 1 ? sums[0] : at::cat(sums);
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<RowsCall>(context);
    const HeadShape& heads = call->heads;
    std::vector<Tensor> rows;
    for (const Tensor& x : std::exchange(call->rows, {})) rows.push_back(call->ordered(x));
    const Tensor out = call->ordered(std::exchange(call->out, Tensor()));
    const Tensor dy = call->ordered(gradients[0]), sums = std::exchange(call->sums, Tensor());
    const Tensor sinks = std::exchange(call->sinks, Tensor());
    std::vector<std::vector<Tensor>> grads(rows.size());
    Tensor d_sinks;
    call->each_bucket([&](const Bucket& bucket, auto part) {
      std::vector<Tensor> leaves = parts_of(rows, part);
      const torch::AutoGradMode grad_mode(call->maker != nullptr);
      if (call->maker)
        for (Tensor& leaf : leaves) leaf = leaf.detach().requires_grad_(true);
      const HeadTensors made = call->split(leaves, bucket);
      const torch::NoGradGuard no_grad;
      const HeadTensors plain{made.queries.detach(), made.keys.detach(), made.values.detach()};
      const Attended attended{split_outputs(part(out), bucket, heads),
                              sums_of_rows(part(sums), bucket, heads)};
      const Tensor d_out = split_outputs(part(dy), bucket, heads);
      if (sinks.defined()) {
        const Tensor d =
            sum_by_head(sink_gradient(d_out, attended, sinks_of(sinks, bucket.count, heads)),
                        bucket.count, heads);
        d_sinks = d_sinks.defined() ? d_sinks.add_(d) : d;
      }
      const HeadTensors d_heads =
          attend_backward(d_out, plain, attended, *calls_of(call->plan, bucket));
      if (!call->maker) return grads[0].push_back(join_gradients(d_heads, bucket, heads));
      const std::vector<Tensor> d_rows = made_gradients(leaves, made, d_heads);
      for (std::size_t i = 0; i < d_rows.size(); ++i) grads[i].push_back(d_rows[i]);
    });
    variable_list all;
    for (const std::vector<Tensor>& parts : grads) all.push_back(call->packed(parts));
    all.insert(all.end(), {d_sinks, Tensor()});
    return all;
  }
};

}  // namespace

Tensor row_attention(const Tensor& qkv, const SequencePlan& plan, const HeadShape& heads,
                     const Tensor& sinks) {
  const auto call = c10::make_intrusive<RowsCall>(plan, heads, nullptr);
  call->sinks = sinks.defined() ? sinks.detach() : Tensor();
  // An autograd function does not accept an undefined tensor.
  return RowAttention::apply(at::TensorList(qkv),
                             sinks.defined() ? std::optional(sinks) : std::nullopt, call);
}

Tensor row_attention(const std::vector<Tensor>& rows, const SequencePlan& plan,
                     const std::shared_ptr<const HeadMaker>& maker) {
  return RowAttention::apply(at::TensorList(rows), std::optional<Tensor>(),
                             c10::make_intrusive<RowsCall>(plan, maker->out(), maker));
}

}  // namespace polyphony::exec
