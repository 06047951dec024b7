// What a sweep says of its candidates once they are ranked: how sure their differences are, which are
// tied and by what, where each placement loses its time.
#pragma once

#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Differences from the best and from the first baseline, as far as effects are known (a sweep that is
// stopped leaves some out); `tied`, `simplest`, `tied_by` and `why`.
void judge(const HardwareProfile& profile, Sweep& result);

}  // namespace polyphony::sim
