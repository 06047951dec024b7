// Do both ends of a channel name its messages in one order? Transports without tags (NCCL) match what is sent on a
// channel from one rank to another by its order; of an exchange's messages to one peer, that of their ids.
//   A channel: a stream's name without its last word ("send", "relay", "receive").
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "shared/program/program.h"

namespace polyphony {

// Of a whole Program: the first receive that asks for another message than the one that comes, in words; empty: none.
// Two sends of one exchange that are received by two, in another order, pass verify().
std::string out_of_order(const Program& program);

// What goes on a channel from one rank to another.
struct Channel {
  std::string name;
  Rank source, destination;
  auto operator<=>(const Channel&) const = default;
};
// Those that a rank's messages of a Program go over, each once, ascending; none to itself.
std::vector<Channel> channels_of(const Program& program, Rank rank);

// The name of an exchange's channel.
std::string channel_of(const Program& program, const Op& exchange);

}  // namespace polyphony
