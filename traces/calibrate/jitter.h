// Measures how much repeated ops vary, from measured steps: the jitter of a hardware profile
// (shared/hardware/certainty.h), by activity kind.
//
//   x[i, s]  log of (time of activity i in step s ÷ its time in the cost model), so that steps with
//            different samples can be compared
//   c[s]     median over i of x[i, s] - median_s x[i, s]: the common slowness of step s
//   step     spread of c over the steps, less what the median over so many ops leaves of op jitter
//   op       spread of x[i, s] - median_s x[i, s] - c[s]
//
// Spread is half the distance from the 16th to the 84th percentile: one standard deviation of a
// normal variable, and insensitive to hiccups rarer than one in six. Medians and spreads weight an
// activity by its time. The first step of a run (cold caches, first allocations) is omitted.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "shared/hardware/certainty.h"
#include "shared/hardware/hardware.h"
#include "traces/calibrate/calibrate.h"

namespace polyphony::traces {

// Returns the jitter of `runs`, or nothing if no run has at least four steps.
std::optional<Jitter> measure_jitter(const std::vector<MeasuredRun>& runs,
                                     const HardwareProfile& profile);

struct WeighedValue {
  double value = 0, weight = 1;
};
// Returns the smallest value for which values at or below it hold at least the share q of the total
// weight.
double weighed_quantile(std::vector<WeighedValue> values, double q);

}  // namespace polyphony::traces
