// The answer to "how many GPUs at least?": what the least number of nodes and its doublings reach.
#pragma once

#include <string>

#include "sim/question/least_nodes.h"
#include "sim/sweep/goal_sweep.h"

namespace polyphony::sim {

// `answer`: the sweeps of the least number of nodes and of its doublings. Wrapped to the screen,
// with a line break at the end; empty if nothing fits.
std::string least_text(const LeastNodes& least, const GoalSweep& answer);

}  // namespace polyphony::sim
