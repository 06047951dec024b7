#include "tests/sim/runner/prebuilt_graph.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "shared/error.h"
#include "sim/simgrid/platform.h"
#include "tests/sim/support/child.h"

namespace polyphony::tests {
namespace {

namespace s4u = simgrid::s4u;
using Clock = std::chrono::steady_clock;

constexpr double kSpeed = 1e12;  // of a host; far above the precision of work amounts, 1e-5

// A star as in sim/simgrid/platform.h, with a latency on its links: each rank has a host on its node link
// and one on its fabric link.
class Star {
 public:
  Star(const Network& network, Seconds latency) : network_(network), latency_(latency) {
    zone_ = s4u::Engine::get_instance()->get_netzone_root()->add_netzone_star("cluster");
    hosts_[0].assign(network.node_of.size(), nullptr);
    hosts_[1].assign(network.node_of.size(), nullptr);
  }
  s4u::Host* host(Rank rank, bool fabric) {
    s4u::Host*& host = hosts_[fabric ? 1 : 0][rank.value];
    if (host != nullptr) return host;
    const std::string name = (fabric ? "fabric" : "node") + std::to_string(rank.value);
    host = zone_->add_host(name, kSpeed);
    const BytesPerSecond rate = fabric ? network_.fabric_rate : network_.node_rate;
    const auto* link =
        zone_->add_split_duplex_link(name, rate.value)->set_latency(latency_.count() / 2)->seal();
    zone_->add_route(host, nullptr, {{link, s4u::LinkInRoute::Direction::UP}}, true);
    return host;
  }
  // Runs what takes no resource: as many at a time as there are.
  s4u::Host* clockwork() {
    if (clockwork_ == nullptr) {
      clockwork_ = zone_->add_host("clockwork", kSpeed)->set_core_count(1 << 20);
      zone_->add_route(
          clockwork_, nullptr,
          {{zone_->add_split_duplex_link("clockwork", kSpeed), s4u::LinkInRoute::Direction::UP}},
          true);
    }
    return clockwork_;
  }
  void seal() { zone_->seal(); }

 private:
  const Network& network_;
  Seconds latency_;
  s4u::NetZone* zone_ = nullptr;
  std::vector<s4u::Host*> hosts_[2];
  s4u::Host* clockwork_ = nullptr;
};

using Activities = std::vector<s4u::ActivityPtr>;

class Graph {
 public:
  Graph(const Program& program, const Compiled& compiled, const CostTable& costs)
      : program_(program),
        compiled_(compiled),
        costs_(costs),
        star_(costs.network, message_delay()),
        before_(compiled.nodes.size()) {
    star_.host(Rank(0), false);
    for (const Flow& flow : costs.flows) {
      if (!crosses_links(flow)) continue;
      const bool fabric = !costs.network.same_node(flow.source, flow.destination);
      for (const Rank rank : {flow.source, flow.destination}) star_.host(rank, fabric);
    }
    for (std::size_t rank = 0; rank < program.ranks; ++rank) star_.host(Rank(rank), false);
    star_.clockwork();
    star_.seal();
    for (std::uint32_t node = 0; node < compiled.nodes.size(); ++node) add_node(node);
  }

  void start() {
    for (const s4u::ActivityPtr& activity : all_) activity->start();
  }

 private:
  // Messages have one delay, of the fabric or the node; the larger, as one star has one latency a
  // link.
  Seconds message_delay() const {
    Seconds most{};
    for (std::size_t n = 0; n < compiled_.nodes.size(); ++n)
      if (compiled_.nodes[n].kind == NodeKind::message)
        most = std::max(most, costs_.nodes[n].delay);
    return most;
  }

  void add_node(std::uint32_t node) {
    Activities& before = before_[node];
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    Activities ends = make(node, before);
    for (std::uint32_t i = compiled_.successor_begin[node]; i < compiled_.successor_begin[node + 1];
         ++i) {
      Activities& of = before_[compiled_.successors[i]];
      of.insert(of.end(), ends.begin(), ends.end());
    }
    Activities().swap(before);
  }

  // The activities of a node, after `before`; those that end it.
  Activities make(std::uint32_t node, const Activities& before) {
    const NodeCost& cost = costs_.nodes[node];
    const Node& what = compiled_.nodes[node];
    if (what.kind == NodeKind::join) return before;
    if (what.kind == NodeKind::compute)
      return {exec(star_.host(program_.rank_of(program_.ops[what.what]), false), cost.duration,
                   before)};
    if (cost.flows.size() == 0) return {exec(star_.clockwork(), cost.delay, before)};
    if (what.kind == NodeKind::message) return {comm(costs_.flows[cost.flows.begin], before)};
    const Seconds latency = message_delay_;
    const Activities delay{
        exec(star_.clockwork(), std::max(Seconds(0), cost.delay - latency), before)};
    Activities flows;
    for (std::uint32_t i = cost.flows.begin; i < cost.flows.end; ++i)
      flows.push_back(comm(costs_.flows[i], delay));
    return {exec(star_.clockwork(), Seconds(0), flows)};
  }

  s4u::ActivityPtr exec(s4u::Host* host, Seconds time, const Activities& before) {
    return join(s4u::Exec::init()->set_flops_amount(time.count() * kSpeed)->set_host(host), before);
  }
  s4u::ActivityPtr comm(const Flow& flow, const Activities& before) {
    const bool fabric = !costs_.network.same_node(flow.source, flow.destination);
    const s4u::CommPtr comm = s4u::Comm::sendto_init(star_.host(flow.source, fabric),
                                                     star_.host(flow.destination, fabric));
    comm->set_payload_size(static_cast<std::uint64_t>(flow.bytes.value));
    return join(comm, before);
  }
  template <class Pointer>
  s4u::ActivityPtr join(const Pointer& activity, const Activities& before) {
    for (const s4u::ActivityPtr& other : before) {
      if (auto* exec = dynamic_cast<s4u::Exec*>(other.get()))
        exec->add_successor(activity);
      else
        dynamic_cast<s4u::Comm&>(*other).add_successor(activity);
    }
    all_.push_back(activity);
    return activity;
  }

  const Program& program_;
  const Compiled& compiled_;
  const CostTable& costs_;
  Seconds message_delay_ = message_delay();
  Star star_;
  std::vector<Activities> before_;  // by node, until it is made
  Activities all_;
};

Seconds cpu_now() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return Seconds(static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9);
}

PrebuiltRun run_here(const Program& program, const Compiled& compiled, const CostTable& costs) {
  const auto begin = Clock::now();
  const Seconds cpu_begin = cpu_now();
  static int count = 1;
  static std::string name = "prebuilt";
  static char* arguments[] = {name.data(), nullptr};
  static char** all = arguments;
  s4u::Engine& engine = *new s4u::Engine(&count, all);
  s4u::Engine::set_config("network/model:raw");
  auto* graph = new Graph(program, compiled, costs);  // its end is the process's
  const auto built = Clock::now();
  const Seconds cpu_built = cpu_now();
  graph->start();
  engine.run();
  const auto end = Clock::now();
  return {built - begin, end - built, cpu_built - cpu_begin, cpu_now() - cpu_built,
          Seconds(s4u::Engine::get_clock())};
}

}  // namespace

PrebuiltRun run_prebuilt(const Program& program, const Compiled& compiled, const CostTable& costs) {
  const std::string bytes = sim::run_in_child([&] {
    const PrebuiltRun result = run_here(program, compiled, costs);
    return std::string(reinterpret_cast<const char*>(&result), sizeof result);
  });
  PrebuiltRun result;
  POLYPHONY_CHECK(bytes.size() == sizeof result, bytes.size());
  std::memcpy(&result, bytes.data(), sizeof result);
  return result;
}

std::uint64_t count_activities(const Compiled& compiled, const CostTable& costs) {
  std::uint64_t count = 0;
  for (const Node& node : compiled.nodes) count += node.kind == NodeKind::compute;
  for (const Flow& flow : costs.flows) count += crosses_links(flow);
  return count;
}

}  // namespace polyphony::tests
