// Computes the steady step time from the steps of a training log, and its uncertainty.
//
//   warm-up    omitted from each attempt (framework_log.h): the first line, which includes
//              compilation, first allocations and reads from disk, and the following lines while
//              they are slower than the median of the attempt's second half by more than kWarm
//              deviations. In an attempt with one line nothing is omitted
//   value      median of the other lines
//   spread     1.4826 times the median absolute distance from the value, relative. Insensitive to
//              checkpoints and evaluations in fewer than half of the lines
//   noise      relative deviation of the median: 1.2533 · spread / √lines, at least kLeastNoise,
//              because another run of the same job differs by more (assumed; two sites of one
//              layout differ by 2 to 6 % in published rows)
#pragma once

#include "traces/import/framework_log.h"

namespace polyphony::traces {

inline constexpr double kWarm = 3;
inline constexpr double kLeastNoise = 0.01;

struct SteadySteps {
  Seconds step{};
  double spread = 0, noise = 0;
  int used = 0, left_out = 0;  // number of lines
};
// The work of one step, which converts a logged rate to a time: tokens and samples per step, and
// the number of ranks. 0: unknown.
struct StepWork {
  std::int64_t tokens = 0, samples = 0;
  int ranks = 0;
};
// Returns the time of one step according to the line, or nothing if the line has no time and no
// usable rate.
std::optional<Seconds> time_of(const LoggedStep& line, const StepWork& work);
// Returns the number of warm-up lines of an attempt: at least one if there are two or more lines.
std::size_t warm_up(const std::vector<Seconds>& lines);
// Returns the steady step time over all attempts, or nothing if no line has a time.
std::optional<SteadySteps> steady_steps(const std::vector<std::vector<LoggedStep>>& attempts,
                                        const StepWork& work);

}  // namespace polyphony::traces
