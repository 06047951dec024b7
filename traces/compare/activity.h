// When each op of a Timeline was really at work. The rest of its recorded time it was blocked, and
// blocked time is idle time.
//   An op could start when its stream was free and its waits had ended; the time from there to its
//   first stamp (waking up, dispatch) is part of its cost, so that all time between things that
//   wait for each other belongs to some op.
//   compute, update: from when it could start and, with inner collectives, all members could
//   collective: from when all members could start
//   exchange: the union over its messages of [both ends could start, first end ended]; of the
//     last to start, to the op's own end. A send that ended before its receive could start (a
//     buffering transport) worked for no time.
// A partial Timeline counts what it holds: an absent end never blocks.
#pragma once

#include <optional>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony::traces {

struct Interval {
  Seconds start{};
  Seconds end{};
  auto operator<=>(const Interval&) const = default;
};

struct Activity {
  std::vector<Range>
      of;  // by op id: positions in `intervals`; empty for an op that never worked, or is absent
  std::vector<Interval> intervals;  // of one op: disjoint and in order
};
Activity find_activity(const Program& program, const Timeline& timeline);

// What ops that work together took: from the first start to the last end. Nothing when none of them
// worked, or when an op's messages came apart in time.
std::optional<Seconds> time_at_work(const Activity& activity, const std::vector<OpId>& members);

// Sorted, overlaps joined.
std::vector<Interval> joined(std::vector<Interval> intervals);

// Length of the union; sorts its argument.
Seconds union_length(std::vector<Interval> intervals);

// The op's recorded time by op id, nothing where the Timeline does not hold it.
std::vector<std::optional<Interval>> recorded(const Program& program, const Timeline& timeline);

// Ops that work together on one collective or one compute with inner collectives: by op id the
// number of its set, the same for all members; other ops have a set of their own.
std::vector<std::uint32_t> rendezvous_sets(const Program& program);

}  // namespace polyphony::traces
