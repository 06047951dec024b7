// The answer for a goal as stdout shows it: the best of each variant, or the Pareto front of two
// objectives.
#pragma once

#include "sim/sweep/goal_sweep.h"

namespace polyphony::sim {

// Prints nothing where the goal is the scenario's step time alone.
void print_goal(const GoalSweep& answer);

}  // namespace polyphony::sim
