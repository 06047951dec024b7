// The effect of Cluster::degraded: slower devices, and failed links.
//
// The factor of a device applies to its compute and memory rates. An op that several ranks run
// together takes as long as on the slowest of them. Factors of links: shared/hardware/network.h.
//
// A NIC is needed by messages to and from other nodes, and by collectives of groups over several
// nodes, whose channels use the NICs of all members. A node link is needed by messages and groups
// inside a domain. If a failed link (factor 0) is needed, the layout is infeasible.
// Source: own derivation.
#pragma once

#include <optional>

#include "shared/error.h"
#include "shared/hardware/cluster.h"
#include "shared/hardware/hardware.h"
#include "shared/program/program.h"

namespace polyphony {

// Returns the factor of the slowest device among the ranks that run the op together.
double slowest_device(const Program& program, const Op& op, const Cluster& cluster);
// Returns the profile of a device whose rates are multiplied by `factor`.
HardwareProfile slowed(HardwareProfile profile, double factor);

// Returns Infeasible if the Program needs a link that has failed; its text names the rank, the link
// and the message or group that needs it.
std::optional<Infeasible> check_links(const Program& program, const Cluster& cluster);

}  // namespace polyphony
