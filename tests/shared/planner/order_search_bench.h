// The list scheduler and the order search on DIP's VLM-L, for scripts/bench_planners.
#pragma once

#include <string>

namespace polyphony {

// Returns seconds on one core.
double thousand_placements();

// Returns how far above the bound the search is after 0.1, 1, 2, 10, 60, 600 and 1800 s on one
// core, up to `longest`: "…, 2 s +3.51 %". `apart`: backwards may run in two parts.
std::string search_gaps(bool apart, double longest);

// Returns for how many steps, of those small enough for exhaustive search, the search finds the
// optimum.
std::string optimal_small_steps();

}  // namespace polyphony
