#include "sim/platform.h"

#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>
#include <string>

namespace polyphony::sim {
namespace {

namespace s4u = simgrid::s4u;

// The engine lives until the process ends: taking it down costs time and nothing is left to do
// after a run.
s4u::Engine& make_engine(Seconds precision) {
  static int count = 1;
  static std::string program = "polyphony";
  static char* arguments[] = {program.data(), nullptr};
  static char** all = arguments;
  s4u::Engine& engine = *new s4u::Engine(&count, all);
  // time = size / bandwidth; fair sharing; no TCP window, no cross traffic, no correction factors.
  s4u::Engine::set_config("network/model:raw");
  s4u::Engine::set_config("precision/timing", precision.count());
#ifdef POLYPHONY_THREAD_CONTEXTS
  s4u::Engine::set_config("contexts/factory:thread");
#endif
  return engine;
}

class Star {
 public:
  explicit Star(s4u::NetZone* zone) : zone_(zone) {}

  s4u::Host* add(const char* kind, std::uint32_t rank, BytesPerSecond rate) {
    const std::string name = kind + std::to_string(rank);
    // The speed is never used: compute ops are timers. It must be positive.
    s4u::Host* host = zone_->add_host(name, 1.0);
    const s4u::SplitDuplexLink* link = zone_->add_split_duplex_link(name, rate.value);
    zone_->add_route(host, nullptr, {{link, s4u::LinkInRoute::Direction::UP}}, true);
    return host;
  }

 private:
  s4u::NetZone* zone_;
};

}  // namespace

Platform::Platform(const CostTable& costs, Seconds precision)
    : network_(costs.network),
      on_node_link_(costs.network.node_of.size(), nullptr),
      on_fabric_link_(costs.network.node_of.size(), nullptr) {
  s4u::NetZone* zone = make_engine(precision).get_netzone_root()->add_netzone_star("cluster");
  Star star(zone);
  for (const Flow& flow : costs.flows) {
    if (!crosses_links(flow)) continue;
    const bool inside = network_.same_node(flow.source, flow.destination);
    for (const Rank rank : {flow.source, flow.destination}) {
      s4u::Host*& host = (inside ? on_node_link_ : on_fabric_link_)[rank.value];
      if (host == nullptr) {
        host = star.add(inside ? "node" : "fabric", rank.value,
                        inside ? network_.node_rate : network_.fabric_rate);
      }
    }
  }
  zone->seal();
}

Platform::Route Platform::route(const Flow& flow) const {
  const auto& hosts =
      network_.same_node(flow.source, flow.destination) ? on_node_link_ : on_fabric_link_;
  return {hosts[flow.source.value], hosts[flow.destination.value]};
}

}  // namespace polyphony::sim
