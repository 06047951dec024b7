// What ranks call what they share: each may have a Program of its own part (Program::only), in which
// groups and messages have other numbers than in its peers'.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/program/program.h"

namespace polyphony::exec {

// By GroupId: the kind, the members, and how many groups alike come before.
std::vector<std::string> group_names(const Program& program);
// By MessageId, of those that `rank` sends or receives: how many from its source to its destination
// come before. Of others 0.
std::vector<std::uint32_t> message_tags(const Program& program, Rank rank);

}  // namespace polyphony::exec
