// Limits, in bytes, how far the host may queue ahead of its device. A tensor that one stream made
// and another used last is released on the host when that use is queued, but its memory is free
// only when the device has passed the use.
//   Counts boundary tensors and gathered parameters, by the Program's sizes. Those of the newest op
//   do not count, so the device always has something to do.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "shared/program/program.h"
#include "shared/units.h"

namespace polyphony::exec {

class RunAhead {
 public:
  RunAhead(const Program& program, Rank rank, Bytes limit);
  // Counts an op that has been queued.
  void add(OpId op);
  // Returns the oldest op whose end the host must wait for before it queues more; nothing if it may
  // continue.
  std::optional<OpId> too_far() const;
  // Removes that op from the count: it has ended.
  void passed();

 private:
  struct Entry {
    OpId op;
    std::int64_t bytes;
  };
  const Program& program_;
  std::int64_t limit_, bytes_ = 0;
  std::map<BufferId, StreamId> made_by_;
  std::deque<Entry> entries_;
};

}  // namespace polyphony::exec
