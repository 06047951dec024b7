// Builds the cluster's network in SimGrid, as one flat star of hosts. Ranks that share a NIC or a
// leaf switch share its links.
//
// Each rank has one SimGrid host per kind of path that its flows take (Network::Way): over its
// switch link, its bus link, its link to host memory, its NIC, or its NIC and the uplinks of its
// leaf switch. Each of these links has an up and a down direction; the memory of a host is one link
// for both directions. A transfer crosses the up links of the sender and the down links of the
// receiver, on the path that joins the two.
//
// The rate limit of a single connection is one more link, of which every flow gets the full rate
// (SimGrid: FATPIPE). Rates are in bytes per second and direction, from CostTable::network. Link
// latencies are zero: a latency is modeled as a delay before the flow, because SimGrid shares a
// link in proportion to 1/latency, and a flow without latency would starve next to one with it.
//
// Does not model: spine switches, bridges inside hosts.
#pragma once

#include <simgrid/forward.h>

#include <array>
#include <vector>

#include "shared/cost/cost.h"

namespace polyphony::sim {

class Platform {
 public:
  // Creates the SimGrid engine of this process, so there must be one Platform per process. Events
  // closer together than `precision` are handled as simultaneous.
  Platform(const CostTable& costs, Seconds precision);

  struct Route {
    simgrid::s4u::Host* source;
    simgrid::s4u::Host* destination;
  };
  // Returns the two hosts of a flow. The flow must cross links (see crosses_links).
  Route route(const Flow& flow) const;

 private:
  static constexpr std::size_t kWays = 5;
  const Network& network_;
  // Indexed by kind of path, then by rank (or host); null if no flow needs it.
  std::array<std::vector<simgrid::s4u::Host*>, kWays> hosts_;
};

}  // namespace polyphony::sim
