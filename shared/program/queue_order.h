// The order in which one thread queues a rank's ops on a device, and the channels on which their
// messages travel.
//
//   The order is that of turns (shared/step/turns.h). At a turn come first the messages whose rows
//   are read at it, both ends in the order of their numbers, then all other ops in the Program's
//   order. A sum of gradients has the turn of the compute op before it; a gather of parameters that
//   of the task before the one that reads them, if all members have the two right after each other,
//   else that of the one that reads; copies that of the compute op before. Those of the end of a
//   step come last.
//   Messages from one buffer to one other buffer are a launch of their own, because the rows of a
//   send may be read at several turns, and those of a receive come from several sends. So both ends
//   of a channel have the same launches in the same order.
//
//   All ranks keep to one order: launches of different ranks that meet (the two ends of a message,
//   the members of a collective, the ranks of a cell) are queued in the same order everywhere.
//   find_queue_deadlock() proves it of a whole Program.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shared/program/channel.h"
#include "shared/program/program.h"

namespace polyphony {

// What is queued at once: an op, or some messages of an exchange.
struct Launch {
  OpId op;
  Range messages{};                // positions in QueueOrder::messages(); empty: not an exchange
  bool first = true, last = true;  // of the launches of the op
};

class QueueOrder {
 public:
  // `program` must outlive this object; it may be the part of `rank`. Throws InternalError if an op
  // would come before one that it waits for: in a Program without turns.
  QueueOrder(const Program& program, Rank rank);

  const std::vector<Launch>& launches() const { return launches_; }
  // Returns the messages of a launch, ascending. They have the same source and the same
  // destination.
  std::span<const MessageId> messages(const Launch& launch) const {
    return {messages_.data() + launch.messages.begin, launch.messages.size()};
  }

 private:
  std::vector<Launch> launches_;
  std::vector<MessageId> messages_;
};

// Returns the channels of the messages that `rank` sends or receives, each once, in ascending
// order. Messages of a rank to itself have no channel.
std::vector<Channel> channels_of(const Program& program, Rank rank);

// Runs a whole Program on devices that run one launch at a time, in the order in which they were
// queued. Returns a description of launches that wait for each other for ever; empty: the step
// ends, whatever hosts wait for, and however few streams, queues and multiprocessors devices have.
std::string find_queue_deadlock(const Program& program);

}  // namespace polyphony
