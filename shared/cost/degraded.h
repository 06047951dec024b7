// What Cluster::degraded means: slower devices, and links that have failed.
//   A device's factor holds for its compute and memory rates; ops that several ranks run together
//   last as long as the slowest's. Links' factors are in shared/hardware/network.h.
//   A failed NIC (factor 0) is needed by messages to and from other nodes, and by collectives of
//   groups over several nodes, whose channels use every member's; a failed node link by messages
//   and groups inside a domain. Source: own count.
#pragma once

#include <optional>

#include "shared/error.h"
#include "shared/hardware/cluster.h"
#include "shared/hardware/hardware.h"
#include "shared/program/program.h"

namespace polyphony {

// Factor of the slowest device of those that run the op together.
double slowest_device(const Program& program, const Op& op, const Cluster& cluster);
// Of a device that is slower by the factor.
HardwareProfile slowed(HardwareProfile profile, double factor);

// Whether the Program needs a link that has failed: names the rank, the link and what needs it.
std::optional<Infeasible> check_links(const Program& program, const Cluster& cluster);

}  // namespace polyphony
