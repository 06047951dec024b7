// How far a host that queues may be ahead of its device, in memory: what one stream made and another used last is given up
// on the host when that use is queued, but its memory is free only when the device has passed it.
//   Boundary tensors and gathered parameters, by the Program's sizes. The newest op's do not count: the device always
//   has something to do.
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
  // An op is queued.
  void add(OpId op);
  // The oldest op whose end the host must see before it queues more; nothing: it may go on.
  std::optional<OpId> too_far() const;
  void passed();  // that one has ended

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
