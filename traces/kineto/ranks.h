// Combines the traces of several ranks of one job: checks that they belong together, aligns their
// clocks, and finds slow ranks.
//
// Clocks: files state the Unix time of their origin, but the hosts' clocks differ. A collective in
// which all ranks reduce or gather ends on all ranks within microseconds, so the median difference
// between the ends of matched collectives is the difference of the clocks. If it is larger than 100
// us and than four times its own spread, it is subtracted and noted (not of ranks on CPUs, whose
// collectives end less together). Drift within a trace (seconds
// long) is not corrected.
//
// Collectives are matched by step, kind, size, group and order. Old files do not state groups:
// their collectives are matched where both ranks have the same number in the step.
//
// Slow ranks are found without clocks: in a collective the other ranks wait for the rank that
// enters last, so the kernel of that rank is the shortest.
//
// Throws InputError if a rank occurs twice, if ranks are not stated, or if world sizes, steps or
// times do not match.
#pragma once

#include <vector>

#include "traces/kineto/device_times.h"

namespace polyphony::traces {

struct ClockShift {
  Nanoseconds shift{};   // to add to the rank's times; the earliest origin of all ranks is 0
  Nanoseconds spread{};  // median distance of the matched ends from their median
  std::int64_t matched = 0;
  bool moved = false;  // the collectives corrected the times that the files state
};
struct RankSet {
  std::vector<DeviceTrace> traces;  // by rank
  std::vector<RankTimes> times;
  std::vector<ClockShift> clocks;
  // By rank: number of matched collectives that it entered last.
  std::vector<std::int64_t> last_in;
  std::int64_t matched = 0;  // number of matched collectives
  std::vector<std::string> notes;
};
// Combines the traces, one per rank.
RankSet rank_set(std::vector<DeviceTrace> traces);

// The rank with the most computation and copies in its median step.
struct SlowRank {
  std::size_t rank = 0;          // index into traces
  Nanoseconds busy{}, median{};  // of this rank; of the median rank
};
// Returns the slowest rank, or nothing if there are fewer than two ranks.
std::optional<SlowRank> slow_rank(const RankSet& ranks);

}  // namespace polyphony::traces
