// Names for groups and messages that ranks agree on. Each rank may have a Program of its own part
// only (Program::only), in which groups and messages are numbered differently than in its peers'
// Programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/program/program.h"

namespace polyphony::exec {

// Returns a name per GroupId, made of the group's kind, its members, and the number of earlier
// groups with the same kind and members.
std::vector<std::string> group_names(const Program& program);
// Returns a tag per MessageId: for messages that `rank` sends or receives, the number of earlier
// messages from the same source to the same destination; for others 0.
std::vector<std::uint32_t> message_tags(const Program& program, Rank rank);

}  // namespace polyphony::exec
