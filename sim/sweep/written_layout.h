// The layout that a scenario says, as the one candidate of a sweep: what a question that varies the layout itself
// asks. Its planner, if it has one, plans the typical batch; simulated whole.
#pragma once

#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Needs a layout that check_layout() accepts. Where it does not fit, or has no answer, nothing is ranked and
// `failed` says why.
Sweep written_layout(const Scenario& scenario, const HardwareProfile& profile,
                     const SweepOptions& options);

}  // namespace polyphony::sim
