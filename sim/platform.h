// The cluster as SimGrid sees it: one flat star. Every rank that a flow touches has two hosts, one
// on its node link and one on its fabric link, each with its own up and down link; a transfer
// crosses the sender's up link and the receiver's down link of the kind that joins them.
//   Rates in bytes a second and per direction, from CostTable::network. Link latencies are zero: a
//   latency is a delay before the flow (SimGrid shares a link in proportion to 1/latency, so that a
//   flow without latency would starve beside one with).
// A rank's transfer to itself crosses nothing and must not come here. One per process, made inside
// run_in_child().
//
// Does not model: the fabric's inside (non-blocking), PCIe, hosts' memory.
#pragma once

#include <simgrid/forward.h>

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
  const Network& network_;
  std::vector<simgrid::s4u::Host*> on_node_link_;    // by rank; null when no flow needs it
  std::vector<simgrid::s4u::Host*> on_fabric_link_;  // by rank; null when no flow needs it
};

// Whether a flow uses links at all.
inline bool crosses_links(const Flow& flow) {
  return flow.source != flow.destination && flow.bytes.value > 0;
}

}  // namespace polyphony::sim
