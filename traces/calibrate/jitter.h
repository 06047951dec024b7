// How repeated ops spread, from measured steps: the jitter of a hardware profile
// (shared/hardware/certainty.h), by activity kind.
//   x[i, s]  log of (time at work of activity i in step s ÷ what the cost model makes of it), so
//            that steps of unequal samples compare
//   c[s]     median over i of x[i, s] - median_s x[i, s]: what all activities of the step share
//   step     spread of c over the steps, less what single ops leave in a median of so many
//   op       spread of x[i, s] - median_s x[i, s] - c[s]
// Spread: half the distance from the 16th to the 84th of 100, one deviation of a normal number, and
// deaf to hiccups rarer than one in six. Medians and spreads weigh an activity by its time. The
// first step of a run (cold caches, first allocations) is left out.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "shared/hardware/certainty.h"
#include "shared/hardware/hardware.h"
#include "traces/calibrate/calibrate.h"

namespace polyphony::traces {

// Nothing when no run has four steps.
std::optional<Jitter> measure_jitter(const std::vector<MeasuredRun>& runs,
                                     const HardwareProfile& profile);

struct WeighedValue {
  double value = 0, weight = 1;
};
// The smallest value with at least the share q of all weight at or below it.
double weighed_quantile(std::vector<WeighedValue> values, double q);

}  // namespace polyphony::traces
