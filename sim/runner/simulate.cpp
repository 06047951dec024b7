#include "sim/runner/simulate.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sim/runner/helper.h"
#include "sim/runner/play_request.h"

namespace polyphony::sim {
namespace {

bool is_time(Seconds value) { return value.count() >= 0 && std::isfinite(value.count()); }
bool is_rate(BytesPerSecond value) { return value.value > 0 && std::isfinite(value.value); }

void check_shape(const Program& program, const Compiled& compiled, const CostTable& costs) {
  POLYPHONY_CHECK(costs.nodes.size() == compiled.nodes.size(),
                  costs.nodes.size() << " costs, " << compiled.nodes.size() << " nodes");
  POLYPHONY_CHECK(compiled.op_start.size() == program.ops.size(),
                  compiled.op_start.size() << " compiled ops, " << program.ops.size() << " ops");
  for (const NodeCost& cost : costs.nodes) {
    POLYPHONY_CHECK(is_time(cost.duration) && is_time(cost.delay),
                    cost.duration.count() << " s, delay " << cost.delay.count() << " s");
    POLYPHONY_CHECK(cost.flows.begin <= cost.flows.end && cost.flows.end <= costs.flows.size(),
                    cost.flows.begin << " to " << cost.flows.end << " of " << costs.flows.size());
  }
  const std::size_t ranks = costs.network.ends();
  for (const Flow& flow : costs.flows) {
    POLYPHONY_CHECK(
        flow.source.value < ranks && flow.destination.value < ranks && flow.bytes.value >= 0,
        flow.bytes.value << " bytes from " << flow.source.value << " to " << flow.destination.value
                         << " of " << ranks);
  }
}

std::variant<std::monostate, Infeasible> check_links(const CostTable& costs) {
  for (const Flow& flow : costs.flows) {
    if (!crosses_links(flow)) continue;
    if (is_rate(costs.network.rate(flow.source, flow.destination))) continue;
    if (costs.network.way(flow.source, flow.destination) == Network::Way::host)
      return Infeasible{
          "activations are offloaded, but the cluster has no link between device and host memory: "
          "set \"host_link\", such as \"63GBps\""};
    const bool inside = !costs.network.over_fabric(flow.source, flow.destination);
    return Infeasible{"no link connects rank " + std::to_string(flow.source.value) + " and rank " +
                      std::to_string(flow.destination.value) + ": the cluster's " +
                      (inside ? "node" : "fabric") + " link has no rate"};
  }
  return {};
}

// Returns the time within which SimGrid treats events as simultaneous. It is relative to the length
// of the step, so that it is above the resolution of the clock for a step of an hour and does not
// merge events of a step of a microsecond. It is a power of two, so that scaling all times by a
// power of two changes no bit of the result.
//   2^-40 of the step is about 1e-12 of it: 4,096 times the resolution of a double at that time.
Seconds event_precision(Seconds step) {
  if (step.count() <= 0) return Seconds(1e-12);
  int exponent = 0;
  std::frexp(step.count(), &exponent);
  return Seconds(std::ldexp(1.0, exponent - 40));
}

// Returns the times of ops, from those of the graph's nodes.
Playback playback_of(const PlayResult& result, const Program& program, const Compiled& compiled) {
  Playback playback;
  playback.wall = result.wall;
  playback.flows = result.flows;
  for (std::size_t rank = 0; rank < result.sent_on_node.size(); ++rank)
    playback.sent.push_back({result.sent_on_node[rank], result.sent_on_fabric[rank]});
  playback.timeline.ops.resize(program.ops.size());
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    OpTime& time = playback.timeline.ops[op];
    time.op = OpId(op);
    time.start = result.start[compiled.op_start[op]];
    time.end = result.end[compiled.op_end[op]];
    playback.timeline.makespan = std::max(playback.timeline.makespan, time.end);
  }
  return playback;
}

}  // namespace

std::variant<Playback, Infeasible> play(const Program& program, const Compiled& compiled,
                                        const CostTable& costs) {
  check_shape(program, compiled, costs);
  auto links = check_links(costs);
  if (auto* no = std::get_if<Infeasible>(&links)) return std::move(*no);
  const Seconds precision = event_precision(estimate_step(compiled, costs).step());
  const PlayResult result =
      read_result(run_helper(helper_program(), to_bytes(compiled, costs, precision)));
  POLYPHONY_CHECK(result.start.size() == compiled.nodes.size() &&
                      result.end.size() == compiled.nodes.size() &&
                      result.sent_on_node.size() == costs.network.node_of.size() &&
                      result.sent_on_fabric.size() == costs.network.node_of.size(),
                  "polyphony-simulate answered another request");
  return playback_of(result, program, compiled);
}

std::variant<Timeline, Infeasible> simulate(const Program& program, const Compiled& compiled,
                                            const CostTable& costs) {
  auto result = play(program, compiled, costs);
  if (auto* playback = std::get_if<Playback>(&result)) return std::move(playback->timeline);
  return std::move(std::get<Infeasible>(result));
}

}  // namespace polyphony::sim
