// The cluster as SimGrid sees it: one flat star. Every rank that a flow touches has a host for each
// way that its flows take (Network::Way): its switch link, its bus link, its link to its host's memory,
// its NIC, its NIC and its leaf's uplinks; each an up and a down link. A host's memory is one link for
// both ways. A transfer crosses the sender's up links and the
// receiver's down links of the way that joins them. Hosts of one NIC or one leaf share its links.
//   A connection's limit is one more link for all, which each flow has alone (SimGrid: FATPIPE).
//   Rates in bytes a second and per direction, from CostTable::network. Link latencies are zero: a
//   latency is a delay before the flow (SimGrid shares a link in proportion to 1/latency, so that a
//   flow without latency would starve beside one with).
// A rank's transfer to itself crosses nothing and must not come here. One per process, made inside
// run_in_child().
//
// Does not model: spine switches, hosts' bridges.
#pragma once

#include <simgrid/forward.h>

#include <array>
#include <vector>

#include "shared/cost/cost.h"

namespace polyphony::sim {

class Platform {
 public:
  // `precision`: two events closer than this are one. Makes the process's SimGrid engine.
  Platform(const CostTable& costs, Seconds precision);

  struct Route {
    simgrid::s4u::Host* source;
    simgrid::s4u::Host* destination;
  };
  Route route(const Flow& flow) const;

 private:
  static constexpr std::size_t kWays = 5;
  const Network& network_;
  // By way, then rank (or host); null when no flow needs it.
  std::array<std::vector<simgrid::s4u::Host*>, kWays> hosts_;
};

// Whether a flow uses links at all.
inline bool crosses_links(const Flow& flow) {
  return flow.source != flow.destination && flow.bytes.value > 0;
}

}  // namespace polyphony::sim
