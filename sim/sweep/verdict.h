// Analyzes a ranking: how certain the differences are, which candidates are tied and why, and where
// each placement loses time.
#pragma once

#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Sets the differences from the best candidate and from the first baseline, for candidates whose
// effects are known (not all are if a sweep was stopped); and `tied`, `simplest`, `tied_by`, `why`.
void judge(const Scenario& scenario, const HardwareProfile& profile, Sweep& result);

}  // namespace polyphony::sim
