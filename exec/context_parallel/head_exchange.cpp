#include "exec/context_parallel/head_exchange.h"

#include <numeric>
#include <utility>

#include "exec/context_parallel/context_attention.h"
#include "exec/on_device.h"

namespace polyphony::exec {

using torch::Tensor;

HeadExchange::HeadExchange(InnerGroup& group, std::vector<std::int64_t> counts, Tensor order,
                           Tensor inverse)
    : group_(group),
      counts_(std::move(counts)),
      rows_(std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0})),
      order_(std::move(order)),
      inverse_(std::move(inverse)) {}

std::vector<std::int64_t> HeadExchange::mine() const {
  return std::vector<std::int64_t>(counts_.size(),
                                   counts_[static_cast<std::size_t>(group_.index())]);
}

Tensor HeadExchange::all(const Tensor& own) const {
  const std::int64_t ranks = group_.size(), rows = own.size(0), width = own.size(1) / ranks;
  const Tensor parts =
      own.view({rows, ranks, width}).transpose(0, 1).reshape({ranks * rows, width});
  const Tensor arrived = group_.all_to_all(parts, mine(), counts_, rows_);
  return order_.defined() ? arrived.index_select(0, order_) : arrived;
}

Tensor HeadExchange::own(const Tensor& all) const {
  const Tensor sent = inverse_.defined() ? all.index_select(0, inverse_) : all;
  const std::int64_t ranks = group_.size(), width = all.size(1);
  const Tensor arrived = group_.all_to_all(sent, counts_, mine(), rows_);
  const std::int64_t rows = arrived.size(0) / ranks;
  return arrived.view({ranks, rows, width}).transpose(0, 1).reshape({rows, ranks * width});
}

SequencePlan plan_exchange(const WorkInput& data, InnerGroup& context, const Tensor& angles,
                           torch::Dtype dtype, std::int64_t window, std::int64_t row_split) {
  const Tensor lengths =
      at::bincount(data.context_samples, {}, static_cast<std::int64_t>(data.lengths.size()));
  const std::int64_t* const first = lengths.const_data_ptr<std::int64_t>();
  SequencePlan plan =
      data.mask.runs.empty()
          ? plan_causal({first, first + lengths.numel()}, angles.device(), window, row_split)
          : plan_masked(data.mask, window, row_split, angles.device());
  GatheredOrder sorted = order_gathered(data);
  if (sorted.order.defined())
    sorted = {on_device(sorted.order, angles.device()), on_device(sorted.inverse, angles.device())};
  plan.heads =
      std::make_shared<HeadExchange>(context, data.context_rows, sorted.order, sorted.inverse);
  plan.own = one_sequence(angles.size(0));
  add_rotation(plan.own, angles, dtype);
  return plan;
}

Tensor exchange_heads(const Tensor& qkv, const SequencePlan& plan, const HeadShape& heads) {
  const HeadTensors own = to_heads(qkv, plan.own, heads);
  const Tensor rows = at::cat({own.queries, own.keys, own.values}, 1)  // [K, g + 2, T, D]
                          .permute({2, 0, 1, 3})
                          .reshape(qkv.sizes());
  return all_rows(plan.heads, rows);
}

}  // namespace polyphony::exec
