#include "traces/kineto/summary.h"

#include <algorithm>
#include <map>

namespace polyphony::traces {
namespace {

template <class Row>
void longest_first(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.total > b.total; });
}

BytesPerSecond rate(Bytes bytes, Nanoseconds time) {
  return BytesPerSecond(static_cast<double>(bytes.value) / Seconds(time).count());
}

}  // namespace

std::optional<CollectiveKind> collective_kind(CollectiveCall call) {
  switch (call) {
    case CollectiveCall::all_reduce:
      return CollectiveKind::all_reduce;
    case CollectiveCall::all_gather:
      return CollectiveKind::all_gather;
    case CollectiveCall::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    case CollectiveCall::all_to_all:
      return CollectiveKind::all_to_all;
    case CollectiveCall::broadcast:
    case CollectiveCall::reduce:
    case CollectiveCall::send_receive:
    case CollectiveCall::other:
      break;
  }
  return {};
}

std::vector<CollectiveRow> collective_rows(const RankSet& ranks) {
  std::map<CollectiveShape, std::vector<Nanoseconds>> times;
  for (const DeviceTrace& trace : ranks.traces)
    for (const DeviceEvent& event : trace.events)
      if (event.kind == KernelClass::collective && event.detail != kNone)
        times[trace.collectives[event.detail]].push_back(event.duration);
  std::vector<CollectiveRow> rows;
  for (auto& [shape, durations] : times) {
    std::sort(durations.begin(), durations.end());
    CollectiveRow row{.shape = shape,
                      .count = static_cast<std::int64_t>(durations.size()),
                      .median = durations[durations.size() / 2],
                      .shortest = durations.front()};
    for (const Nanoseconds duration : durations) row.total += duration;
    if (shape.bytes && row.shortest.count() > 0) {
      row.algorithm = rate(*shape.bytes, row.median);
      const bool told = shape.ranks > 0 && shape.call != CollectiveCall::other;
      if (told) row.bus = *row.algorithm * bus_factor(shape.call, shape.ranks);
      if (told)
        row.best_bus = rate(*shape.bytes, row.shortest) * bus_factor(shape.call, shape.ranks);
    }
    rows.push_back(std::move(row));
  }
  longest_first(rows);
  return rows;
}

Flops flops_of(const MatrixProduct& product) {
  return Flops(2.0 * static_cast<double>(product.batch) * static_cast<double>(product.m) *
               static_cast<double>(product.n) * static_cast<double>(product.k));
}

std::vector<ProductCall> product_calls(const DeviceTrace& trace) {
  std::map<std::uint32_t, ProductCall> calls;  // by position in trace.products, one of each call
  for (const DeviceEvent& event : trace.events) {
    if (event.kind != KernelClass::gemm || event.detail == kNone) continue;
    ProductCall& call = calls[event.detail];
    call.product = trace.products[event.detail];
    call.op = event.op;
    call.step = event.step;
    call.time += event.duration;
  }
  std::vector<ProductCall> in_order;
  for (const auto& [position, call] : calls) in_order.push_back(call);
  return in_order;
}

std::vector<ProductRow> product_rows(const RankSet& ranks) {
  std::map<MatrixProduct, ProductRow> rows;
  for (const DeviceTrace& trace : ranks.traces)
    for (const ProductCall& call : product_calls(trace)) {
      ProductRow& row = rows[call.product];
      ++row.count;
      row.total += call.time;
    }
  std::vector<ProductRow> result;
  for (auto& [product, row] : rows) {
    row.product = product;
    const double flops = flops_of(product).value * static_cast<double>(row.count);
    if (row.total.count() > 0) row.rate = FlopsPerSecond(flops / Seconds(row.total).count());
    result.push_back(row);
  }
  longest_first(result);
  return result;
}

std::vector<KernelRow> kernel_rows(const RankSet& ranks) {
  std::map<std::pair<std::string, KernelClass>, KernelRow> rows;
  for (const DeviceTrace& trace : ranks.traces)
    for (const DeviceEvent& event : trace.events) {
      KernelRow& row = rows[{trace.names[event.name], event.kind}];
      ++row.count;
      row.total += event.duration;
    }
  std::vector<KernelRow> result;
  for (auto& [key, row] : rows) {
    row.name = key.first;
    row.kind = key.second;
    result.push_back(std::move(row));
  }
  longest_first(result);
  return result;
}

}  // namespace polyphony::traces
