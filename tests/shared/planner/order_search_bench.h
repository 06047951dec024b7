// The list scheduler and the order search on DIP's VLM-L, for scripts/bench_planners.
#pragma once

#include <string>

namespace polyphony {

// Seconds of one core.
double thousand_placements();

// How far above the bound the search is after 0.1, 1, 2, 10, 60, 600 and 1800 s of one core, as far as
// they are not above `longest`: "…, 2 s +3.51 %". `apart`: backwards may run in two parts.
std::string search_gaps(bool apart, double longest);

// Of how many steps small enough to try all orders the search finds the quickest.
std::string optimal_small_steps();

}  // namespace polyphony
