// Do both ends of a channel name its messages in one order? Transports without tags (NCCL) match what is sent on a
// channel from one rank to another by its order; of an exchange's messages to one peer, that of their ids.
//   A channel: a stream's name without its last word ("send", "relay", "receive").
#pragma once

#include <string>

#include "shared/program/program.h"

namespace polyphony {

// Of a whole Program: the first receive that asks for another message than the one that comes, in words; empty: none.
// Two sends of one exchange that are received by two, in another order, pass verify().
std::string out_of_order(const Program& program);

// The channel of an exchange.
std::string channel_of(const Program& program, const Op& exchange);

}  // namespace polyphony
