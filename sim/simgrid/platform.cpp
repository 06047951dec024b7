#include "sim/simgrid/platform.h"

#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>
#include <string>
#include <utility>

namespace polyphony::sim {
namespace {

namespace s4u = simgrid::s4u;

// The engine is never destroyed: that would cost time, and the process ends after the run.
s4u::Engine& make_engine(Seconds precision) {
  static int count = 1;
  static std::string program = "polyphony";
  static char* arguments[] = {program.data(), nullptr};
  static char** all = arguments;
  s4u::Engine& engine = *new s4u::Engine(&count, all);
  // "raw": time = size / bandwidth, with fair sharing; no TCP window, no cross traffic, no
  // correction factors.
  s4u::Engine::set_config("network/model:raw");
  s4u::Engine::set_config("precision/timing", precision.count());
#ifdef POLYPHONY_THREAD_CONTEXTS
  s4u::Engine::set_config("contexts/factory:thread");
#endif
  return engine;
}

class Star {
 public:
  Star(s4u::NetZone* zone, const Network& network)
      : zone_(zone), network_(network), links_(network.links() / 2, nullptr) {}

  // Adds the host of a rank for one kind of path. Its upward route crosses the first half of the
  // links of `crossing`; its downward route uses their other direction.
  s4u::Host* add(Network::Way way, Rank rank, const Crossing& crossing) {
    const std::string name = kNames[static_cast<std::size_t>(way)] + std::to_string(rank.value);
    // The speed is never used: compute ops are timers. It must be positive.
    s4u::Host* host = zone_->add_host(name, 1.0);
    std::vector<s4u::LinkInRoute> up;
    for (std::uint32_t i = 0; i < crossing.count / 2; ++i)
      if (network_.is_host(rank))
        up.emplace_back(memory(crossing.links[i]));
      else
        up.emplace_back(link(crossing.links[i]), s4u::LinkInRoute::Direction::UP);
    if (way >= Network::Way::leaf && network_.shaped && network_.connection.value > 0)
      up.emplace_back(connection());
    zone_->add_route(host, nullptr, up, true);
    return host;
  }

 private:
  static constexpr const char* kNames[] = {"node", "bus", "host", "fabric", "spine"};

  const s4u::SplitDuplexLink* link(std::uint32_t number) {
    const s4u::SplitDuplexLink*& known = links_[number / 2];
    if (known == nullptr)
      known = zone_->add_split_duplex_link("link" + std::to_string(number / 2),
                                           network_.capacity(number).value);
    return known;
  }

  // The memory of a host: one link for both directions.
  const s4u::Link* memory(std::uint32_t number) {
    return zone_->add_link("memory" + std::to_string(number / 2), network_.capacity(number).value);
  }

  // The limit of a single connection: every flow gets the full rate of this link.
  const s4u::Link* connection() {
    if (connection_ != nullptr) return connection_;
    s4u::Link* one = zone_->add_link("connection", network_.connection.value);
    one->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
    return connection_ = one;
  }

  s4u::NetZone* zone_;
  const Network& network_;
  std::vector<const s4u::SplitDuplexLink*> links_;  // by link number of Network / 2
  const s4u::Link* connection_ = nullptr;
};

}  // namespace

Platform::Platform(const CostTable& costs, Seconds precision) : network_(costs.network) {
  for (auto& by_rank : hosts_) by_rank.assign(network_.ends(), nullptr);
  s4u::NetZone* zone = make_engine(precision).get_netzone_root()->add_netzone_star("cluster");
  Star star(zone, network_);
  for (const Flow& flow : costs.flows) {
    if (!crosses_links(flow)) continue;
    const Network::Way way = network_.way(flow.source, flow.destination);
    auto& hosts = hosts_[static_cast<std::size_t>(way)];
    for (const auto& [end, other] :
         {std::pair(flow.source, flow.destination), std::pair(flow.destination, flow.source)})
      if (hosts[end.value] == nullptr)
        hosts[end.value] = star.add(way, end, network_.crossing(end, other));
  }
  zone->seal();
}

Platform::Route Platform::route(const Flow& flow) const {
  const auto& hosts = hosts_[static_cast<std::size_t>(network_.way(flow.source, flow.destination))];
  return {hosts[flow.source.value], hosts[flow.destination.value]};
}

}  // namespace polyphony::sim
