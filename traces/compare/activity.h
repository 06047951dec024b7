// Computes when each op of a Timeline was active. During the rest of its recorded time the op was
// blocked; blocked time counts as idle time.
//
// An op could start when its stream was free and the ops that it waits for had ended. The time from
// that moment to its recorded start (waking up, dispatch) is part of its cost. All time between ops
// that depend on each other therefore belongs to some op.
//
//   compute, update: active from when the op could start; with inner collectives, from when all
//     members of the group could start
//   collective: from when all members could start
//   exchange: the union over its messages of [both ends could start, first end ended]; for the
//     message that starts last, until the end of the op. A send that ended before its receive could
//     start (a buffering transport) has no active time
//
// In a partial Timeline only the recorded ops count: an absent end never blocks.
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
      of;  // by op id: positions in `intervals`; empty if the op was never active or is absent
  std::vector<Interval> intervals;  // those of one op are disjoint and in order of time
};
// Returns the active intervals of all ops.
Activity find_activity(const Program& program, const Timeline& timeline);

// Returns the time that ops that run together took, from the first start to the last end. Returns
// nothing if none of them was active, or if the messages of an op have a gap between them.
std::optional<Seconds> time_at_work(const Activity& activity, const std::vector<OpId>& members);

// Returns the intervals sorted, with overlapping ones joined.
std::vector<Interval> joined(std::vector<Interval> intervals);

// Returns the length of the union of the intervals.
Seconds union_length(std::vector<Interval> intervals);

// Returns the recorded interval by op id; nothing for an op that is not in the Timeline.
std::vector<std::optional<Interval>> recorded(const Program& program, const Timeline& timeline);

// Returns, by op id, the number of its rendezvous set. Ops that run together (members of one
// collective, or of one compute op with inner collectives) share a set; any other op has its own.
std::vector<std::uint32_t> rendezvous_sets(const Program& program);

}  // namespace polyphony::traces
