// The phases of a training run side by side, as stdout shows them after their sweeps.
#pragma once

#include <string>

#include "sim/sweep/phase_plan.h"

namespace polyphony::sim {

// Returns a table with one row per phase, a row of the sums, and what they include.
std::string phase_plan_text(const PhasePlan& plan);

}  // namespace polyphony::sim
