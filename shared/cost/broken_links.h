// Whether a Program needs a link that has failed: a rank whose Cluster::degraded says a factor of
// 0.
//   A NIC is needed by messages to and from other nodes, and by collectives of groups over several
//   nodes, whose channels use every member's; a node link by messages and groups inside a domain.
// Without failed links nothing is looked at.
#pragma once

#include <optional>

#include "shared/error.h"
#include "shared/program/program.h"
#include "shared/scenario/cluster.h"

namespace polyphony {

// Names the rank, the link and what needs it.
std::optional<Infeasible> check_links(const Program& program, const Cluster& cluster);

}  // namespace polyphony
