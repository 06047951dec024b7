// Traces of several ranks of one job, put together: whether they belong together, on one clock, and who is
// slow.
//   Clocks: files say the Unix time of their origin, hosts' clocks differ. A collective in which all ranks
//   sum or gather ends on all of them within microseconds, so that the median difference of the ends of
//   matched collectives is the clocks' difference. A larger one than four times its own spread and 100 us
//   is taken off, and noted. Drift within a trace (seconds long) is not looked for.
//   Collectives are matched by step, kind, size, group and order; old files tell no groups: there they
//   are matched where both ranks have as many in the step.
//   Who is slow, no clock is needed for: in a collective the others wait for the rank that comes last, so
//   that its kernel is the shortest.
// Errors: InputError. Refused: a rank twice, ranks that are not told, other world sizes, steps or times.
#pragma once

#include <vector>

#include "traces/kineto/device_times.h"

namespace polyphony::traces {

struct ClockShift {
  Nanoseconds shift{};   // added to the rank's times, all ranks' first origin being 0
  Nanoseconds spread{};  // median distance of matched ends from their median
  std::int64_t matched = 0;
  bool moved = false;  // by collectives, over what the files say
};
struct RankSet {
  std::vector<DeviceTrace> traces;  // by rank
  std::vector<RankTimes> times;
  std::vector<ClockShift> clocks;
  // By rank: in how many of the matched collectives it was the last to come; how many there were.
  std::vector<std::int64_t> last_in;
  std::int64_t matched = 0;
  std::vector<std::string> notes;
};
RankSet rank_set(std::vector<DeviceTrace> traces);

// The rank with the most computation and copies in its median step, and over the median rank's.
struct SlowRank {
  std::size_t rank = 0;  // index into traces
  Nanoseconds busy{}, median{};
};
std::optional<SlowRank> slow_rank(const RankSet& ranks);  // of at least two

}  // namespace polyphony::traces
