#include "shared/cost.h"

#include <algorithm>

#include "shared/error.h"

namespace polyphony {
namespace {

// What crosses each link, by rank.
struct LinkLoads {
  std::vector<Bytes> node_up, node_down, fabric_up, fabric_down;

  explicit LinkLoads(std::size_t ranks)
      : node_up(ranks), node_down(ranks), fabric_up(ranks), fabric_down(ranks) {}

  void add(const Flow& flow, const Network& network) {
    if (flow.source == flow.destination) return;
    const bool inside = network.same_node(flow.source, flow.destination);
    (inside ? node_up : fabric_up)[flow.source.value] += flow.bytes;
    (inside ? node_down : fabric_down)[flow.destination.value] += flow.bytes;
  }
};

Seconds longest(const std::vector<Bytes>& loads, BytesPerSecond rate) {
  const auto most = std::max_element(loads.begin(), loads.end());
  if (most == loads.end() || most->value == 0) return Seconds(0);
  return *most / rate;
}

Seconds busiest_link(const Compiled& compiled, const CostTable& costs) {
  LinkLoads loads(costs.network.node_of.size());
  for (std::size_t node = 0; node < compiled.nodes.size(); ++node) {
    const Range flows = costs.nodes[node].flows;
    for (std::uint32_t i = flows.begin; i < flows.end; ++i) {
      loads.add(costs.flows[i], costs.network);
    }
  }
  const Network& network = costs.network;
  return std::max({longest(loads.node_up, network.node_rate),
                   longest(loads.node_down, network.node_rate),
                   longest(loads.fabric_up, network.fabric_rate),
                   longest(loads.fabric_down, network.fabric_rate)});
}

Seconds busiest_stream(const Program& program, const Compiled& compiled, const CostTable& costs) {
  std::vector<Seconds> busy(program.streams.size());
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const StreamId stream = program.ops[op].stream;
    if (program.streams[stream.value].kind != StreamKind::compute) continue;
    // A compute op is one node.
    busy[stream.value] += unshared_time(costs, compiled.op_start[op]);
  }
  const auto most = std::max_element(busy.begin(), busy.end());
  return most == busy.end() ? Seconds(0) : *most;
}

}  // namespace

Seconds unshared_time(const CostTable& costs, std::uint32_t node) {
  const NodeCost& cost = costs.nodes[node];
  Seconds slowest{};
  for (std::uint32_t i = cost.flows.begin; i < cost.flows.end; ++i) {
    const Flow& flow = costs.flows[i];
    if (flow.source == flow.destination || flow.bytes.value == 0) continue;
    slowest = std::max(slowest, flow.bytes / costs.network.rate(flow.source, flow.destination));
  }
  return cost.duration + cost.delay + slowest;
}

Seconds Estimate::step() const { return std::max({longest_path, busiest_link, busiest_stream}); }

Seconds walk_longest_path(const Compiled& compiled, const CostTable& costs, PathTimes& times) {
  const std::size_t count = compiled.nodes.size();
  POLYPHONY_CHECK(costs.nodes.size() == count, costs.nodes.size()
                                                   << " costs, " << count << " nodes");
  times.start.assign(count, Seconds(0));
  times.end.resize(count);
  Seconds last{};
  for (std::uint32_t node = 0; node < count; ++node) {
    const Seconds end = times.start[node] + unshared_time(costs, node);
    times.end[node] = end;
    last = std::max(last, end);
    const std::uint32_t stop = compiled.successor_begin[node + 1];
    for (std::uint32_t i = compiled.successor_begin[node]; i < stop; ++i) {
      Seconds& start = times.start[compiled.successors[i]];
      start = std::max(start, end);
    }
  }
  return last;
}

Estimate estimate(const Program& program, const Compiled& compiled, const CostTable& costs) {
  PathTimes times;
  Estimate result;
  result.longest_path = walk_longest_path(compiled, costs, times);
  result.busiest_link = busiest_link(compiled, costs);
  result.busiest_stream = busiest_stream(program, compiled, costs);
  result.timeline.makespan = result.longest_path;
  result.timeline.ops.resize(program.ops.size());
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    result.timeline.ops[op] = {OpId(op), times.start[compiled.op_start[op]],
                               times.end[compiled.op_end[op]]};
  }
  return result;
}

}  // namespace polyphony
