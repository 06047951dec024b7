// The options of `sweep`: what is searched, for what goal, how long, and where answers go.
#pragma once

#include <vector>

#include "sim/cli/command.h"
#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Adds the options that say how long a search may take, and where it keeps what it predicted.
void add_budget_options(Arguments& args, const char* effort = "1");
// Adds the options that every search has, and those of `sweep`, which include them. `effort`: the
// default of --effort; with --thorough, which `ask` has, it is 1.
void add_search_options(Arguments& args, const char* effort = "1");
void add_sweep_options(Arguments& args);

// Returns the values of the scenario's goal and search that options state for this question:
// --objective days,dollars --nodes 8..64 --tokens 1e12 --memory-margin 5%. Throws InputError.
std::vector<Override> goal_overrides(const Arguments& args);
// Returns the options of the search, with this machine's cores and free memory. Throws InputError.
SweepOptions sweep_options(const Arguments& args);

}  // namespace polyphony::sim
