// Selects the rows of a ranking that differ in their main features: the placement, the ranks of
// each module, and the language module's tp, cp, pp, vpp and ep. Other rows are variants of an
// earlier one.
#pragma once

#include <vector>

#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Returns for each row of sweep.ranked whether it is the first with its features.
std::vector<bool> leading_rows(const Sweep& sweep, const Model& model);

}  // namespace polyphony::sim
