// The answers of `sweep --vary` as stdout shows them.
#pragma once

#include <string>

#include "sim/sweep/vary.h"

namespace polyphony::sim {

// Returns a table with one row per question. `layouts`: the layout itself is varied, so rows are
// ordered by step time and compared with the fastest.
std::string vary_text(const Varied& varied, bool layouts);
// Returns a map of the best placements over two variations. Empty for another number of them, or if
// the search was stopped before all questions had an answer.
std::string placements_text(const Varied& varied);

}  // namespace polyphony::sim
