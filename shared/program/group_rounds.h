// Distributes groups of ranks over rounds in which communicators are created.
//
// All groups of a round are created by one call that splits the ranks by color (such as
// ncclCommSplit), so two groups of a round share no rank. Each group takes the first round in which
// all of its ranks are free. If the groups partition the ranks in the same way, the number of
// rounds is the number of groups of a rank. It is at most one plus the sum, over the ranks of a
// group, of the number of other groups of that rank.
//
// Time: proportional to the sum of the groups' sizes, times the number of rounds / 64.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/ids.h"

namespace polyphony {

// Returns the round of each group, counted from 0.
std::vector<std::uint32_t> group_rounds(const std::vector<std::vector<Rank>>& groups);

}  // namespace polyphony
