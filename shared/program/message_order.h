// Checks that both ends of a channel use its messages in the same order.
//
// Transports without tags (NCCL) match the messages on a channel from one rank to another by their
// order. The messages of one exchange op to one peer are ordered by their ids. The name of a
// channel is the name of the stream without its last word ("send", "relay", "receive").
//
// With `separate`, each message of an exchange to one peer has a channel of its own, numbered by
// its position among them. This is needed if several exchanges receive these messages, in an order
// that the sender does not know. The messages of one exchange leave one buffer, which both ends
// know, so both ends know the positions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/program/channel.h"
#include "shared/program/program.h"

namespace polyphony {

class MessageChannels {
 public:
  // `program` must outlive this object. It may be the part of one rank.
  MessageChannels(const Program& program, bool separate);
  // Returns the name of the channel that carries `message` of the op `exchange`.
  std::string name(const Op& exchange, MessageId message) const;
  // Returns the channels of the messages that `rank` sends or receives, each once, in ascending
  // order. Messages of a rank to itself have no channel.
  std::vector<Channel> of(Rank rank) const;

 private:
  const Program& program_;
  std::vector<std::uint32_t> place_;  // by message; empty: not separate
};

// Returns a description of the first receive of a whole Program that expects another message than
// the one that arrives next on its channel; empty if there is none. verify() does not find this
// fault: two messages that one exchange sends and two exchanges receive in another order pass it.
std::string out_of_order(const Program& program, bool separate);

}  // namespace polyphony
