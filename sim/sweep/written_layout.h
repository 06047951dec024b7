// A sweep with a single candidate, the layout written in the scenario. Used when --vary changes
// fields of the layout itself.
#pragma once

#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Predicts the scenario's layout on the typical batch, unfolded; the layout's planner, if any,
// plans that batch. The layout must be accepted by check_layout(). If it does not fit or cannot be
// predicted, `ranked` is empty and `failed` has the reason.
Sweep written_layout(const Scenario& scenario, const HardwareProfile& profile,
                     const SweepOptions& options);

}  // namespace polyphony::sim
