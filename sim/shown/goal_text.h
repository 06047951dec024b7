// What a person reads of a goal: the best of each variant, or the Pareto front of two objectives.
#pragma once

#include "sim/sweep/goal_sweep.h"

namespace polyphony::sim {

// Nothing where the goal is the scenario's step alone.
void print_goal(const GoalSweep& answer);

}  // namespace polyphony::sim
