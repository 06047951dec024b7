// In which rounds groups of ranks are made, when a round makes groups that share no rank: what one split of the ranks by
// colours gives.
//   Each group takes the first round in which all of its ranks are free: as many rounds as a rank has groups where
// they partition the ranks alike, and never more than one plus the sum, over a group's ranks, of the other groups of
// each.
//   Work is the sum of the groups' sizes times the rounds over 64.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/ids.h"

namespace polyphony {

// Of each group, its round, from 0.
std::vector<std::uint32_t> group_rounds(const std::vector<std::vector<Rank>>& groups);

}  // namespace polyphony
