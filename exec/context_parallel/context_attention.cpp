#include "exec/context_parallel/context_attention.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "exec/context_parallel/context_rows.h"
#include "exec/on_device.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

std::vector<std::int64_t> values_of(const Tensor& tensor) {
  const Tensor host = tensor.contiguous();
  const std::int64_t* const first = host.const_data_ptr<std::int64_t>();
  return {first, first + host.numel()};
}

// The sample and position of each row of the gathered axis.
struct GatheredRows {
  std::vector<std::int64_t> samples, positions;
  std::size_t first_own = 0, own = 0;  // this rank's rows: the first, and their number
};

void check_rows(const GatheredRows& rows, const WorkInput& data) {
  std::vector<std::int64_t> found(data.lengths.size());
  for (std::size_t i = rows.first_own; i < rows.first_own + rows.own; ++i) {
    POLYPHONY_CHECK(i == rows.first_own || std::tie(rows.samples[i - 1], rows.positions[i - 1]) <
                                               std::tie(rows.samples[i], rows.positions[i]),
                    "row " << i - rows.first_own << " of this rank is out of order");
    ++found.at(static_cast<std::size_t>(rows.samples[i]));
  }
  POLYPHONY_CHECK(found == data.lengths,
                  rows.own << " rows do not make the lengths of the samples on this rank");
}

// Returns ascending numbers as intervals.
std::vector<Interval> intervals_of(const std::vector<std::int64_t>& numbers) {
  std::vector<Interval> list;
  for (const std::int64_t number : numbers) {
    if (list.empty() || list.back().end != number) list.push_back({number, number});
    ++list.back().end;
  }
  return list;
}

}  // namespace

GatheredOrder order_gathered(const WorkInput& data) {
  // Positions within a sample are below the number of all rows.
  const Tensor places =
      data.context_samples * data.context_samples.numel() + data.context_positions;
  if (at::all(places.diff() > 0).item<bool>()) return {};
  const Tensor order = places.argsort();
  return {order, order.argsort()};
}

std::shared_ptr<const ContextPlan> plan_context(const WorkInput& data, InnerGroup& context,
                                                const Tensor& angles, torch::Dtype dtype,
                                                AttentionWay way, std::int64_t window) {
  GatheredRows rows{values_of(data.context_samples), values_of(data.context_positions), 0, 0};
  const std::vector<std::int64_t>& counts = data.context_rows;
  const auto mine = counts.begin() + context.index();
  rows.first_own = static_cast<std::size_t>(std::accumulate(counts.begin(), mine, std::int64_t{0}));
  rows.own = static_cast<std::size_t>(*mine);
  POLYPHONY_CHECK(static_cast<int>(counts.size()) == context.size() && angles.size(0) == *mine,
                  angles.size(0) << " tokens, " << counts.size() << " context ranks");
  check_rows(rows, data);

  auto plan = std::make_shared<ContextPlan>();
  plan->rows = one_sequence(*mine);
  add_rotation(plan->rows, angles, dtype);
  plan->gather = std::make_shared<ListedRows>(context, counts);

  const GatheredOrder sorted = order_gathered(data);
  if (sorted.order.defined()) {
    plan->order = on_device(sorted.order, angles.device());
    plan->inverse = on_device(sorted.inverse, angles.device());
  }
  std::vector<std::int64_t> order(rows.samples.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (sorted.order.defined()) order = values_of(sorted.order);
  std::vector<std::int64_t> lengths(data.lengths.size()), ends(counts.size());
  std::partial_sum(counts.begin(), counts.end(), ends.begin());
  // For each rank, the places of its rows in order of sample and position.
  std::vector<std::vector<std::int64_t>> places(counts.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    ++lengths.at(static_cast<std::size_t>(rows.samples[static_cast<std::size_t>(order[place])]));
    const auto rank = std::upper_bound(ends.begin(), ends.end(), order[place]) - ends.begin();
    places[static_cast<std::size_t>(rank)].push_back(static_cast<std::int64_t>(place));
  }
  const TokenMask mask = data.mask.runs.empty() ? mask_of(lengths, /*causal=*/true) : data.mask;
  const auto gathered = static_cast<std::int64_t>(order.size());
  POLYPHONY_CHECK(mask.tokens() == gathered,
                  "a mask of " << mask.tokens() << " tokens, " << gathered << " gathered");
  const std::vector<Rectangle> all = rectangles(mask, window);
  const std::vector<Interval> queries =
      intervals_of(places[static_cast<std::size_t>(context.index())]);
  if (way.context != ContextAttention::ring) {
    plan->heads = way.heads;
    plan->calls = calls_for(all, queries, key_pieces(gathered, way.row_split), angles.device());
    return plan;
  }
  std::vector<AttentionCalls> calls;
  for (const std::vector<std::int64_t>& keys : places)
    calls.push_back(calls_for(all, queries, intervals_of(keys), angles.device()));
  plan->ring = std::make_shared<KeyRing>(KeyRing{context, counts, std::move(calls)});
  return plan;
}

GatheredHeads gather_keys(const Tensor& qkv, const ContextPlan& plan, const HeadShape& heads) {
  const HeadTensors own = to_heads(qkv, plan.rows, heads);
  const std::int64_t some = plan.heads > 0 ? plan.heads : heads.kv_heads,
                     groups = heads.kv_heads / some, rows = plan.rows.rows;
  const auto by_row = [&](const Tensor& x) {  // [K, 1, T, D] -> [groups, T, some, D]
    return x.squeeze(1).unflatten(0, {groups, some}).transpose(1, 2);
  };
  const Tensor own_keys = at::stack({by_row(own.keys), by_row(own.values)}, 2)
                              .view({groups * rows, 2 * some * heads.width});
  Tensor all = plan.comes_by() ? own_keys : all_rows(plan.gather, own_keys);
  if (!plan.comes_by() && plan.order.defined()) all = permute_rows(all, plan.order, plan.inverse);
  // On a CPU, copies the queries, so that they do not keep the rotated keys in memory as well.
  return {qkv.is_cpu() ? own.queries.clone(at::MemoryFormat::Contiguous) : own.queries, all};
}

Tensor context_attention(const GatheredHeads& gathered,
                         const std::shared_ptr<const ContextPlan>& shared, const HeadShape& heads,
                         const Tensor& sinks) {
  const ContextPlan& plan = *shared;
  // A rank without rows must still take part in the group's backward pass: this keeps the graph
  // connected.
  if (plan.rows.rows == 0 && !plan.comes_by())
    return from_heads(gathered.queries + gathered.keys.narrow(0, 0, 0).sum(), plan.rows, heads);
  return row_context_attention(gathered.queries, gathered.keys, shared, heads, sinks);
}

}  // namespace polyphony::exec
