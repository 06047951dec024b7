#include "exec/attention/row_attention.h"

#include <optional>
#include <utility>

#include "exec/attention/context_attention.h"
#include "exec/attention/head_rows.h"
#include "exec/autograd/saved_call.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Bucket = SequencePlan::Bucket;

namespace {

Tensor for_group(const Tensor& x, const HeadShape& heads) {
  return x.expand({-1, heads.group, -1, -1});
}

// [count·K, g, L] <-> [rows, K, g]. Padding queries are zero, so that a log-sum-exp of zero does
// them no harm.
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

struct RowsCall : torch::CustomClassHolder {
  SequencePlan plan;
  HeadShape heads;
  Tensor qkv, out, sums;  // [T, K·(g+2)·D], [T, K·g·D], [T, K·g]: packed order; sums: bucket order
  RowsCall(SequencePlan plan_, const HeadShape& heads_) : plan(std::move(plan_)), heads(heads_) {}
  // Rows bucket after bucket, and back.
  Tensor ordered(const Tensor& x) const {
    return plan.order.defined() ? x.index_select(0, plan.order) : x;
  }
  Tensor packed(const std::vector<Tensor>& parts) const {
    const Tensor x = parts.size() == 1 ? parts[0] : at::cat(parts);
    return plan.order.defined() ? x.index_select(0, plan.inverse) : x;
  }
};

class RowAttention : public torch::autograd::Function<RowAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& qkv,
                        const c10::intrusive_ptr<RowsCall>& call) {
    save_call(context, call);
    const HeadShape& heads = call->heads;
    const Tensor ordered = call->ordered(qkv);
    std::vector<Tensor> outs, sums;
    std::int64_t first = 0;
    for (const Bucket& bucket : call->plan.buckets) {
      const HeadTensors parts = split_heads(ordered.narrow(0, first, bucket.rows), bucket, heads);
      const auto [out, sum] = at::_scaled_dot_product_flash_attention_for_cpu(
          parts.queries, for_group(parts.keys, heads), for_group(parts.values, heads), 0.0,
          call->plan.causal);
      outs.push_back(join_outputs(out, bucket, heads));
      sums.push_back(sums_to_rows(sum, bucket, heads));
      first += bucket.rows;
    }
    Tensor y = call->packed(outs);
    call->qkv = qkv.detach();
    call->out = y.detach();
    call->sums = sums.size() == 1 ? sums[0] : at::cat(sums);
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<RowsCall>(context);
    const HeadShape& heads = call->heads;
    const Tensor qkv = call->ordered(std::exchange(call->qkv, Tensor()));
    const Tensor out = call->ordered(std::exchange(call->out, Tensor()));
    const Tensor dy = call->ordered(gradients[0]), sums = std::exchange(call->sums, Tensor());
    std::vector<Tensor> grads;
    std::int64_t first = 0;
    for (const Bucket& bucket : call->plan.buckets) {
      const auto part = [&](const Tensor& x) { return x.narrow(0, first, bucket.rows); };
      const HeadTensors parts = split_heads(part(qkv), bucket, heads);
      const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          split_outputs(part(dy), bucket, heads), parts.queries, for_group(parts.keys, heads),
          for_group(parts.values, heads), split_outputs(part(out), bucket, heads),
          sums_of_rows(part(sums), bucket, heads), 0.0, call->plan.causal);
      grads.push_back(join_gradients({dq, dk.sum(1, /*keepdim=*/true), dv.sum(1, /*keepdim=*/true)},
                                     bucket, heads));
      first += bucket.rows;
    }
    return {call->packed(grads), Tensor()};
  }
};

struct ContextCall : torch::CustomClassHolder {
  std::shared_ptr<const ContextPlan> plan;
  HeadShape heads;
  Tensor queries, keys, out;  // [K, g, T, D], [G, 2·K·D], [T, K·g·D]
  std::vector<Tensor> sums;   // of each sample with queries here: [K, g, queries]
  ContextCall(std::shared_ptr<const ContextPlan> plan_, const HeadShape& heads_)
      : plan(std::move(plan_)), heads(heads_) {}

  // Calls use(sample, its first query, its first key) for every sample with queries here.
  template <class Use>
  void each_sample(Use use) const {
    std::int64_t query = 0, key = 0;
    for (const ContextPlan::Sample& sample : plan->samples) {
      if (sample.queries > 0) use(sample, query, key);
      query += sample.queries;
      key += sample.keys;
    }
  }
  // [2, K, g, seen, D]: the keys and values that a sample's queries see.
  Tensor seen(const Tensor& all, const ContextPlan::Sample& sample, std::int64_t first) const {
    return all.narrow(0, first, sample.seen)
        .view({sample.seen, 2, heads.kv_heads, 1, heads.width})
        .permute({1, 2, 3, 0, 4})
        .expand({-1, -1, heads.group, -1, -1});
  }
};

class ContextAttention : public torch::autograd::Function<ContextAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& queries, const Tensor& keys,
                        const c10::intrusive_ptr<ContextCall>& call) {
    save_call(context, call);
    std::vector<Tensor> outs;
    call->each_sample([&](const ContextPlan::Sample& sample, std::int64_t query, std::int64_t key) {
      const Tensor both = call->seen(keys, sample, key);
      const auto [out, sum] = at::_scaled_dot_product_flash_attention_for_cpu(
          queries.narrow(2, query, sample.queries), both[0], both[1], 0.0, sample.causal,
          sample.mask);
      outs.push_back(out);
      call->sums.push_back(sum);
    });
    Tensor y =
        join_outputs(outs.size() == 1 ? outs[0] : at::cat(outs, 2), call->plan->rows, call->heads);
    call->queries = queries.detach();
    call->keys = keys.detach();
    call->out = y.detach();
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<ContextCall>(context);
    const Tensor queries = std::exchange(call->queries, Tensor());
    const Tensor keys = std::exchange(call->keys, Tensor());
    const Tensor out =
        split_outputs(std::exchange(call->out, Tensor()), call->plan->rows, call->heads);
    const Tensor dy = split_outputs(gradients[0], call->plan->rows, call->heads);
    std::vector<Tensor> d_queries;
    Tensor d_keys = at::zeros_like(keys);
    std::size_t place = 0;
    call->each_sample([&](const ContextPlan::Sample& sample, std::int64_t query, std::int64_t key) {
      const Tensor both = call->seen(keys, sample, key);
      const auto part = [&](const Tensor& x) { return x.narrow(2, query, sample.queries); };
      const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          part(dy), part(queries), both[0], both[1], part(out), call->sums[place++], 0.0,
          sample.causal, sample.mask);
      d_queries.push_back(dq);
      d_keys.narrow(0, key, sample.seen)
          .copy_(at::stack({dk.sum(1), dv.sum(1)})  // [2, K, seen, D]
                     .permute({2, 0, 1, 3})
                     .reshape({sample.seen, keys.size(1)}));
    });
    call->sums.clear();
    return {d_queries.size() == 1 ? d_queries[0] : at::cat(d_queries, 2), d_keys, Tensor()};
  }
};

}  // namespace

Tensor row_attention(const Tensor& qkv, const SequencePlan& plan, const HeadShape& heads) {
  return RowAttention::apply(qkv, c10::make_intrusive<RowsCall>(plan, heads));
}

Tensor row_context_attention(const Tensor& queries, const Tensor& keys,
                             std::shared_ptr<const ContextPlan> plan, const HeadShape& heads) {
  return ContextAttention::apply(queries, keys,
                                 c10::make_intrusive<ContextCall>(std::move(plan), heads));
}

}  // namespace polyphony::exec
