// The list scheduler and the order search on DIP's VLM-L, for scripts/bench_planners.
#pragma once

#include <string>

namespace polyphony {

// Seconds of one core.
double thousand_placements();

// How far above the bound the search is after 0.1, 1, 2, 10 and 60 s of one core: "…, 2 s +3.51 %".
std::string search_gaps();

}  // namespace polyphony
