#include "shared/cost/cost.h"

#include <algorithm>

#include "shared/error.h"

namespace polyphony {
namespace {

// Network::rate and Network::crossing for flat machines are inlined here: they are needed for every
// flow, and function calls would make the pass over the graph 10 % slower.
template <bool kShaped>
BytesPerSecond rate_of(const Flow& flow, const Network& network) {
  if constexpr (kShaped) return network.rate(flow.source, flow.destination);
  return network.same_node(flow.source, flow.destination) ? network.node_rate : network.fabric_rate;
}

// The bytes that cross each link.
struct LinkLoads {
  std::vector<Bytes> loads;
  const std::size_t fabric;  // position of the first NIC

  explicit LinkLoads(const Network& network)
      : loads(network.links()), fabric(2 * network.node_of.size()) {}

  template <bool kShaped>
  void add(const Flow& flow, const Network& network) {
    if (flow.source == flow.destination) return;
    if constexpr (kShaped) {
      for (const std::uint32_t link : network.crossing(flow.source, flow.destination))
        loads[link] += flow.bytes;
      return;
    }
    Bytes* const of =
        loads.data() + (network.same_node(flow.source, flow.destination) ? 0 : fabric);
    of[std::size_t{2} * flow.source.value] += flow.bytes;
    of[std::size_t{2} * flow.destination.value + 1] += flow.bytes;
  }
};

template <bool kShaped>
Seconds time_alone(const CostTable& costs, std::uint32_t node) {
  const NodeCost& cost = costs.nodes[node];
  if (cost.flows.size() == 0) return cost.duration + cost.delay;
  Seconds slowest{};
  for (std::uint32_t i = cost.flows.begin; i < cost.flows.end; ++i) {
    const Flow& flow = costs.flows[i];
    if (flow.source == flow.destination || flow.bytes.value == 0) continue;
    slowest = std::max(slowest, flow.bytes / rate_of<kShaped>(flow, costs.network));
  }
  return cost.duration + cost.delay + slowest;
}

Seconds busiest(const LinkLoads& loads, const Network& network) {
  Seconds most{};
  for (std::uint32_t link = 0; link < loads.loads.size(); ++link) {
    const Bytes load = loads.loads[link];
    if (load.value > 0) most = std::max(most, load / network.capacity(link));
  }
  return most;
}

// The start of each node and, if requested, its end.
struct NodeTimes {
  std::vector<Seconds> start, end;
  bool ends = false;
};

// Makes one pass over the graph, which is bound by memory latency. Returns the last end.
template <bool kShaped>
Seconds walk_as(const Compiled& compiled, const CostTable& costs, LinkLoads& loads,
                NodeTimes& times) {
  std::vector<Seconds>& start = times.start;
  const std::size_t count = compiled.nodes.size();
  POLYPHONY_CHECK(costs.nodes.size() == count, costs.nodes.size()
                                                   << " costs, " << count << " nodes");
  start.assign(count, Seconds(0));
  if (times.ends) times.end.resize(count);
  Seconds last{};
  for (std::uint32_t node = 0; node < count; ++node) {
    const Range flows = costs.nodes[node].flows;
    for (std::uint32_t i = flows.begin; i < flows.end; ++i)
      loads.add<kShaped>(costs.flows[i], costs.network);
    const Seconds end = start[node] + time_alone<kShaped>(costs, node);
    last = std::max(last, end);
    if (times.ends) times.end[node] = end;
    const std::uint32_t stop = compiled.successor_begin[node + 1];
    for (std::uint32_t i = compiled.successor_begin[node]; i < stop; ++i) {
      Seconds& next = start[compiled.successors[i]];
      next = std::max(next, end);
    }
  }
  return last;
}

Seconds walk(const Compiled& compiled, const CostTable& costs, LinkLoads& loads, NodeTimes& times) {
  return costs.network.shaped ? walk_as<true>(compiled, costs, loads, times)
                              : walk_as<false>(compiled, costs, loads, times);
}

Seconds busiest_stream(const Compiled& compiled, const CostTable& costs) {
  Seconds most{};
  for (std::size_t stream = 0; stream + 1 < compiled.busy_begin.size(); ++stream) {
    Seconds busy{};
    for (auto i = compiled.busy_begin[stream]; i < compiled.busy_begin[stream + 1]; ++i)
      busy += unshared_time(costs, compiled.busy_nodes[i]);
    most = std::max(most, busy);
  }
  return most;
}

StepBounds bounds(const Compiled& compiled, const CostTable& costs, NodeTimes& times) {
  LinkLoads loads(costs.network);
  StepBounds result;
  result.longest_path = walk(compiled, costs, loads, times);
  result.busiest_link = busiest(loads, costs.network);
  result.busiest_stream = busiest_stream(compiled, costs);
  return result;
}

}  // namespace

Seconds unshared_time(const CostTable& costs, std::uint32_t node) {
  return costs.network.shaped ? time_alone<true>(costs, node) : time_alone<false>(costs, node);
}

Seconds StepBounds::step() const { return std::max({longest_path, busiest_link, busiest_stream}); }

StepBounds estimate_step(const Compiled& compiled, const CostTable& costs) {
  NodeTimes times;
  return bounds(compiled, costs, times);
}

Estimate estimate(const Program& program, const Compiled& compiled, const CostTable& costs) {
  NodeTimes times;
  times.ends = true;  // stored, so that collectives with many flows are computed once
  Estimate result{bounds(compiled, costs, times), {}};
  result.timeline.makespan = result.longest_path;
  result.timeline.ops.resize(program.ops.size());
  for (std::size_t op = 0; op < program.ops.size(); ++op)
    result.timeline.ops[op] = {OpId(op), times.start[compiled.op_start[op]],
                               times.end[compiled.op_end[op]]};
  return result;
}

}  // namespace polyphony
