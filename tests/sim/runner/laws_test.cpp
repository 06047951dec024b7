// Laws of prediction on random Programs: properties of estimate() and simulate(), and relations
// between the two, that hold for every Program.
// Tolerances are relative to the makespan: 1e-9 covers the
// rounding of a few hundred additions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/verify/verify.h"
#include "sim/runner/simulate.h"
#include "tests/sim/random/dice.h"
#include "tests/sim/random/random_program.h"
#include "tests/sim/runner/fluid.h"

namespace polyphony::tests {
namespace {

constexpr std::uint64_t kPrograms = 300;
constexpr double kTolerance = 1e-9;

std::string shape_name(Shape shape) {
  switch (shape) {
    case Shape::pipeline:
      return "pipeline";
    case Shape::graph:
      return "graph";
    case Shape::serial:
      return "serial";
  }
  return "?";
}

Shape shape_of(std::uint64_t seed) {
  return seed % 3 == 0 ? Shape::pipeline : seed % 3 == 1 ? Shape::graph : Shape::serial;
}

sim::Playback play(const Case& in) {
  auto result = sim::play(in.program, in.compiled, in.costs);
  REQUIRE(std::holds_alternative<sim::Playback>(result));
  return std::get<sim::Playback>(std::move(result));
}

// Returns the largest difference of any start or end time.
double distance(const Timeline& a, const Timeline& b, double scale_b = 1) {
  REQUIRE(a.ops.size() == b.ops.size());
  double most = 0;
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    most = std::max(most, std::abs((a.ops[i].start - b.ops[i].start * scale_b).count()));
    most = std::max(most, std::abs((a.ops[i].end - b.ops[i].end * scale_b).count()));
  }
  return most;
}

struct Interval {
  double start, end;
};

// Returns whether two intervals overlap by more than rounding errors (`slack` seconds).
bool overlap(std::vector<Interval>& intervals, double slack) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  for (std::size_t i = 1; i < intervals.size(); ++i) {
    if (intervals[i].start < intervals[i - 1].end - slack) return true;
  }
  return false;
}

// Returns when each node starts if no two flows share a link. Nodes are in the order of the graph.
std::vector<Seconds> unshared_starts(const Case& in) {
  std::vector<Seconds> starts(in.compiled.nodes.size());
  for (std::uint32_t node = 0; node < starts.size(); ++node) {
    const Seconds end = starts[node] + unshared_time(in.costs, node);
    for (std::uint32_t i = in.compiled.successor_begin[node];
         i < in.compiled.successor_begin[node + 1]; ++i) {
      Seconds& next = starts[in.compiled.successors[i]];
      next = std::max(next, end);
    }
  }
  return starts;
}

// Returns whether two flows would use a link at the same time if none slowed another. Flows that
// only touch in time do not count.
bool shares_links(const Case& in) {
  const std::vector<Seconds> starts = unshared_starts(in);
  const double slack = 1e-13 * estimate_step(in.compiled, in.costs).longest_path.count();
  const Network& network = in.costs.network;
  std::vector<std::vector<Interval>> links(network.links());
  for (std::size_t node = 0; node < in.costs.nodes.size(); ++node) {
    const NodeCost& cost = in.costs.nodes[node];
    const double start = (starts[node] + cost.duration + cost.delay).count();
    for (std::uint32_t i = cost.flows.begin; i < cost.flows.end; ++i) {
      const Flow& flow = in.costs.flows[i];
      if (flow.source == flow.destination || flow.bytes.value == 0) continue;
      const double end = start + (flow.bytes / network.rate(flow.source, flow.destination)).count();
      for (const std::uint32_t link : network.crossing(flow.source, flow.destination))
        links[link].push_back({start, end});
    }
  }
  return std::any_of(links.begin(), links.end(),
                     [slack](std::vector<Interval>& link) { return overlap(link, slack); });
}

// Returns the bytes that each rank must send according to the Program: its messages to other ranks,
// and its edge of every ring.
std::vector<sim::Sent> bytes_of(const Case& in) {
  std::vector<sim::Sent> sent(in.program.ranks);
  const auto add = [&](Rank from, Rank to, Bytes bytes) {
    if (from == to) return;
    const bool inside = !in.costs.network.over_fabric(from, to);
    (inside ? sent[from.value].node : sent[from.value].fabric) += bytes;
  };
  for (const Message& message : in.program.messages) {
    add(message.source, message.destination, message.bytes);
  }
  for (const Op& op : in.program.ops) {
    const auto* collective = std::get_if<Collective>(&op.what);
    if (collective == nullptr) continue;
    const std::vector<Rank>& members = in.program.groups[collective->group.value].members;
    const auto own = std::find(members.begin(), members.end(), in.program.rank_of(op));
    const Rank next = own + 1 == members.end() ? members.front() : *(own + 1);
    add(*own, next, ring_bytes(*collective, members.size()));
  }
  return sent;
}

}  // namespace

TEST_CASE("law 1: the estimate never exceeds the simulation") {
  int shared = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Case in = random_case(seed % 2 == 0 ? Shape::pipeline : Shape::graph, seed);
    INFO("seed " << seed);
    const double bound = estimate(in.program, in.compiled, in.costs).step().count();
    const double simulated = play(in).timeline.makespan.count();
    CHECK(bound <= simulated * (1 + kTolerance));
    if (simulated > bound * (1 + kTolerance)) ++shared;
  }
  CHECK(shared > kPrograms / 10);  // enough Programs have contention
}

TEST_CASE("SimGrid shares links like a simple max-min simulator") {
  int shared = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Shape shape = seed % 2 == 0 ? Shape::pipeline : Shape::graph;
    const Case in = random_case(shape, seed);
    INFO(shape_name(shape) << " seed " << seed);
    const Timeline simulated = play(in).timeline;
    const Timeline fluid = play_fluid(in.program, in.compiled, in.costs);
    CHECK(distance(fluid, simulated) <= kTolerance * fluid.makespan.count());
    if (shares_links(in)) ++shared;
  }
  CHECK(shared > kPrograms / 4);
}

TEST_CASE("verify() accepts every random Program") {
  for (std::uint64_t seed = 0; seed < 2 * kPrograms; ++seed) {
    const Program program = random_program(shape_of(seed), seed);
    for (const Fault& fault : verify(program)) {
      FAIL_CHECK(shape_name(shape_of(seed))
                 << " seed " << seed << ": " << name(fault.kind) << ": " << fault.text);
    }
  }
}

TEST_CASE("law 2: without sharing, estimate and simulation agree on every op") {
  int agreed = 0;
  for (std::uint64_t seed = 0; seed < 2 * kPrograms; ++seed) {
    const Shape shape = seed < kPrograms ? Shape::serial : shape_of(2 * seed);
    const Case in = random_case(shape, seed);
    INFO(shape_name(shape) << " seed " << seed);
    const bool shares = shares_links(in);
    if (shape == Shape::serial) CHECK(!shares);
    if (shares) continue;
    const Timeline estimated = estimate(in.program, in.compiled, in.costs).timeline;
    const Timeline simulated = play(in).timeline;
    CHECK(distance(estimated, simulated) <= kTolerance * estimated.makespan.count());
    ++agreed;
  }
  CHECK(agreed >= static_cast<int>(kPrograms));
}

TEST_CASE("law 3: the estimate is monotone in every rate, delay and duration") {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Case in = random_case(shape_of(seed), seed);
    INFO(shape_name(shape_of(seed)) << " seed " << seed);
    Dice dice(seed + 77);
    CostTable slower = in.costs;
    slower.network.node_rate = slower.network.node_rate * (dice.chance(0.5) ? 1 : dice.unit());
    slower.network.fabric_rate = slower.network.fabric_rate * (dice.chance(0.5) ? 1 : dice.unit());
    for (NodeCost& cost : slower.nodes) {
      if (dice.chance(0.2)) cost.duration *= 1 + dice.unit();
      if (dice.chance(0.2)) cost.delay *= 1 + dice.unit();
    }
    const Estimate fast = estimate(in.program, in.compiled, in.costs);
    const Estimate slow = estimate(in.program, in.compiled, slower);
    CHECK(fast.step() <= slow.step());
    for (std::size_t op = 0; op < in.program.ops.size(); ++op) {
      REQUIRE(fast.timeline.ops[op].start <= slow.timeline.ops[op].start);
      REQUIRE(fast.timeline.ops[op].end <= slow.timeline.ops[op].end);
    }
  }
}

TEST_CASE("law 3: without sharing, the simulation is monotone too") {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    Case in = random_case(Shape::serial, seed);
    INFO("seed " << seed);
    Dice dice(seed + 78);
    const Timeline slow = play(in).timeline;
    in.costs.network.node_rate = in.costs.network.node_rate * (1 + dice.unit());
    in.costs.network.fabric_rate = in.costs.network.fabric_rate * (1 + dice.unit());
    const Timeline fast = play(in).timeline;
    const Seconds slack = kTolerance * slow.makespan;
    for (std::size_t op = 0; op < in.program.ops.size(); ++op) {
      REQUIRE(fast.ops[op].start <= slow.ops[op].start + slack);
      REQUIRE(fast.ops[op].end <= slow.ops[op].end + slack);
    }
  }
}

TEST_CASE("law 3: k times the rates and 1/k of the durations make every time 1/k") {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    Case in = random_case(shape_of(seed), seed);
    INFO(shape_name(shape_of(seed)) << " seed " << seed);
    const double k = Dice(seed + 79).spread(1e-6, 1e6);
    const Timeline estimated = estimate(in.program, in.compiled, in.costs).timeline;
    const Timeline simulated = play(in).timeline;
    in.costs = faster(in.costs, k);
    CHECK(distance(estimated, estimate(in.program, in.compiled, in.costs).timeline, k) <=
          kTolerance * estimated.makespan.count());
    CHECK(distance(simulated, play(in).timeline, k) <= kTolerance * simulated.makespan.count());
  }
}

TEST_CASE("law 4: simulating twice gives equal bytes, and work is conserved") {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Case in = random_case(shape_of(seed), seed);
    INFO(shape_name(shape_of(seed)) << " seed " << seed);
    const sim::Playback first = play(in);
    const sim::Playback second = play(in);
    CHECK(first.timeline == second.timeline);
    CHECK(first.sent == second.sent);

    CHECK(first.sent == bytes_of(in));
  }
}

TEST_CASE("law 4: one rank sends nothing") {
  int programs = 0;
  for (std::uint64_t seed = 0; programs < 30; ++seed) {
    const Case in = random_case(Shape::graph, seed);
    if (in.program.ranks != 1) continue;
    ++programs;
    INFO("seed " << seed);
    const sim::Playback playback = play(in);
    CHECK(playback.flows == 0);
    CHECK(playback.sent == std::vector<sim::Sent>(1));
    CHECK(playback.timeline.makespan == estimate(in.program, in.compiled, in.costs).longest_path);
  }
}

}  // namespace polyphony::tests
