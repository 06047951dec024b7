// Times of collectives in profiles of GPUs, as tables like those of nccl-tests: what the efficiency
// of links is fitted to (traces/calibrate/collective_fit.h).
//
// The kernel of a collective also lasts while its rank waits for the others, so of each size the
// shortest time counts, if there are at least kLeastCount. The nodes of a group follow from its
// ranks, if the profile lists them: consecutive ranks are on one node. Without a list, a group that
// fits on one node is taken to be there, and another one is left out.
#pragma once

#include <vector>

#include "traces/import/nccl_tests.h"
#include "traces/kineto/ranks.h"

namespace polyphony::traces {

inline constexpr std::int64_t kLeastCount = 4;

// Returns at most one table for groups within a node and one for groups on several nodes: of the
// collective and size of group that took the most time. `per_node`: ranks on a node.
std::vector<CollectiveTimes> collective_times(const RankSet& ranks, int per_node);

}  // namespace polyphony::traces
