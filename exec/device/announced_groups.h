// Collects the groups that all ranks will make, so that every rank knows all of them in one order,
// which splitting the world's communicator needs. A rank by itself may know only its own part of
// the Program. The lists are exchanged over the host transport.
//
// Only the first member of a group sends the group's member list, so the bytes exchanged grow with
// the sum of the groups' sizes.
#pragma once

#include <string>
#include <vector>

#include "exec/transport/announcing.h"

namespace polyphony::exec {

// Returns the groups of all ranks, in the same order on each rank. Collective. `name` is a new name
// for the group of the host transport that it uses.
// Throws the same InternalError on all ranks if a member of a group does not make the group, or a
// rank that is not a member does.
std::vector<NamedGroup> announced_by_all(Transport& host, const std::string& name,
                                         const std::vector<NamedGroup>& mine);

// Returns the rank numbers, separated by spaces.
std::string words(const std::vector<Rank>& ranks);

// The two steps of announced_by_all(): the text that a rank sends, and the groups that follow from
// the texts of all ranks (indexed by rank).
std::string announcement(Rank self, const std::vector<NamedGroup>& mine);
std::vector<NamedGroup> agreed_groups(const std::vector<std::string>& announcements);

}  // namespace polyphony::exec
