#include "sim/runner/simulate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sim/runner/child.h"
#include "sim/runner/platform.h"
#include "sim/runner/player.h"

namespace polyphony::sim {
namespace {

// Values of one process to itself, in order.
class Writer {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    POLYPHONY_CHECK(bytes_.size() - at_ >= sizeof(T), "short answer from the simulating child");
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

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
          "the cluster does not say how fast an accelerator reaches its host's memory, where "
          "activations are to wait: give \"host_link\", such as \"63GBps\""};
    const bool inside = !costs.network.over_fabric(flow.source, flow.destination);
    return Infeasible{"no link joins rank " + std::to_string(flow.source.value) + " and rank " +
                      std::to_string(flow.destination.value) + ": the cluster's " +
                      (inside ? "node" : "fabric") + " link has no rate"};
  }
  return {};
}

// Two events closer than this are one. Relative to the length of the step, so that a step of an
// hour is not below the resolution of its clock and one of a microsecond is not blurred; a power of
// two, so that scaling all times by one changes no bit.
//   2^-40 of the step is 1e-12 of it: 4,096 times the resolution of a double at that time.
Seconds event_precision(Seconds step) {
  if (step.count() <= 0) return Seconds(1e-12);
  int exponent = 0;
  std::frexp(step.count(), &exponent);
  return Seconds(std::ldexp(1.0, exponent - 40));
}

std::string play_here(const Program& program, const Compiled& compiled, const CostTable& costs,
                      Seconds precision) {
  const auto before = std::chrono::steady_clock::now();
  const Platform platform(costs, precision);
  Player player(compiled, costs, platform);
  player.run();
  Writer out;
  out.reserve(2 * sizeof(double) * program.ops.size() +
              2 * sizeof(std::int64_t) * costs.network.node_of.size() + 64);
  out.put(Seconds(std::chrono::steady_clock::now() - before));
  out.put(player.flows());
  for (const Bytes& sent : player.sent_on_node()) out.put(sent);
  for (const Bytes& sent : player.sent_on_fabric()) out.put(sent);
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    out.put(player.start(compiled.op_start[op]));
    out.put(player.end(compiled.op_end[op]));
  }
  return out.take();
}

Playback parse(const std::string& bytes, std::size_t ops, std::size_t ranks) {
  Reader in(bytes);
  Playback result;
  result.wall = in.get<Seconds>();
  result.flows = in.get<std::uint64_t>();
  result.sent.resize(ranks);
  for (Sent& sent : result.sent) sent.node = in.get<Bytes>();
  for (Sent& sent : result.sent) sent.fabric = in.get<Bytes>();
  result.timeline.ops.resize(ops);
  for (std::size_t op = 0; op < ops; ++op) {
    OpTime& time = result.timeline.ops[op];
    time.op = OpId(op);
    time.start = in.get<Seconds>();
    time.end = in.get<Seconds>();
    result.timeline.makespan = std::max(result.timeline.makespan, time.end);
  }
  POLYPHONY_CHECK(in.at_end(), "long answer from the simulating child");
  return result;
}

}  // namespace

std::variant<Playback, Infeasible> play(const Program& program, const Compiled& compiled,
                                        const CostTable& costs) {
  check_shape(program, compiled, costs);
  auto links = check_links(costs);
  if (auto* no = std::get_if<Infeasible>(&links)) return std::move(*no);
  const Seconds precision = event_precision(estimate_step(compiled, costs).step());
  const std::string bytes =
      run_in_child([&] { return play_here(program, compiled, costs, precision); });
  return parse(bytes, program.ops.size(), costs.network.node_of.size());
}

std::variant<Timeline, Infeasible> simulate(const Program& program, const Compiled& compiled,
                                            const CostTable& costs) {
  auto result = play(program, compiled, costs);
  if (auto* playback = std::get_if<Playback>(&result)) return std::move(playback->timeline);
  return std::move(std::get<Infeasible>(result));
}

}  // namespace polyphony::sim
