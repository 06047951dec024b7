// Which groups all ranks are to make, told to each over the host: a rank's Program may be its own part, and a split of
// the world needs all of them, in one order.
//   A group's members are said by the first of them alone, so that what is said grows with the sum of the groups'
// sizes.
#pragma once

#include <string>
#include <vector>

#include "exec/transport/announcing.h"

namespace polyphony::exec {

// The groups of all ranks, in the same order on each. Collective; `name`: new, of the host's group that it takes.
// InternalError, the same on all ranks, when a member of a group does not make it or another rank does.
std::vector<NamedGroup> announced_by_all(Transport& host, const std::string& name,
                                         const std::vector<NamedGroup>& mine);

// Their numbers, with blanks between.
std::string words(const std::vector<Rank>& ranks);

// What a rank says, and what follows from what all say, by rank.
std::string announcement(Rank self, const std::vector<NamedGroup>& mine);
std::vector<NamedGroup> agreed_groups(const std::vector<std::string>& announcements);

}  // namespace polyphony::exec
