// The samples of a data set (`polyphony scan`) as a table.
#pragma once

#include <string>
#include <vector>

#include "sim/datasets/spreads.h"

namespace polyphony::sim {

// Returns one row per spread that has a value above 0.
std::string spreads_text(const std::vector<Spread>& spreads);

}  // namespace polyphony::sim
