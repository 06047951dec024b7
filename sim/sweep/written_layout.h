// Layouts that a scenario writes down: a sweep with a single candidate, the layout of the scenario
// (used when --vary changes fields of the layout itself), and a scenario of a candidate's layout.
#pragma once

#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Predicts the scenario's layout on the typical batch, unfolded; the layout's planner, if any,
// plans that batch. The layout must be accepted by check_layout(). If it does not fit or cannot be
// predicted, `ranked` is empty and `failed` has the reason.
Sweep written_layout(const Scenario& scenario, const HardwareProfile& profile,
                     const SweepOptions& options);

// Returns the scenario with the candidate's layout and planner costs, its layers split into stages,
// and without a search.
Scenario with_layout_of(const Candidate& candidate, const Scenario& scenario,
                        const HardwareProfile& profile);

}  // namespace polyphony::sim
