// The steps of a log that say how long a step lasts, and how sure that is.
//   left out   of each attempt (framework_log.h) the first line, which counts compilation, first
//              allocations and what was read from disk, and the lines after it as long as they are
//              slower than its second half's median by kWarm of its deviations; of an attempt of
//              one line, nothing
//   value      median of the rest; spread: 1.4826 times the median distance from it, relative. Deaf to
//              checkpoints and evaluations in fewer than half of the lines
//   noise      relative deviation of the median: 1.2533 · spread / √lines, but kLeastNoise at least:
//              the next day's run of the same job is no nearer (assumed; two sites of one layout
//              differ by 2 to 6 % in published rows)
#pragma once

#include "traces/import/framework_log.h"

namespace polyphony::traces {

inline constexpr double kWarm = 3;
inline constexpr double kLeastNoise = 0.01;

struct SteadySteps {
  Seconds step{};
  double spread = 0, noise = 0;
  int used = 0, left_out = 0;  // lines
};
// What a line says in seconds: `tokens` and `samples` of a step and the ranks action rates into times.
// 0: not known.
struct StepWork {
  std::int64_t tokens = 0, samples = 0;
  int ranks = 0;
};
std::optional<Seconds> time_of(const LoggedStep& line, const StepWork& work);
// How many of an attempt's lines are left out; at least one of two or more.
std::size_t warm_up(const std::vector<Seconds>& lines);
// Nothing where no line says a time.
std::optional<SteadySteps> steady_steps(const std::vector<std::vector<LoggedStep>>& attempts,
                                        const StepWork& work);

}  // namespace polyphony::traces
