// Do both ends of a channel name its messages in one order? Transports without tags (NCCL) match what is sent on a
// channel from one rank to another by its order; of an exchange's messages to one peer, that of their ids.
//   A channel's name: that of the stream without its last word ("send", "relay", "receive").
//   Apart: of an exchange's messages to one peer each has a channel of its own, by its place among them. They are received
//   by several exchanges, in an order that their sender cannot see. Those of one exchange leave one buffer, which both
//   ends know, so that both know the places.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/program/channel.h"
#include "shared/program/program.h"

namespace polyphony {

class MessageChannels {
 public:
  // The Program must outlive it, and may be one rank's part.
  MessageChannels(const Program& program, bool apart);
  std::string name(const Op& exchange, MessageId message) const;
  // Those that a rank's messages go over, each once, ascending; none to itself.
  std::vector<Channel> of(Rank rank) const;

 private:
  const Program& program_;
  std::vector<std::uint32_t> place_;  // by message; empty: not apart
};

// Of a whole Program: the first receive that asks for another message than the one that comes, in words; empty: none.
// Two sends of one exchange that are received by two, in another order, pass verify().
std::string out_of_order(const Program& program, bool apart);

}  // namespace polyphony
