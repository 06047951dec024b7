// Rows of a ranking that differ in what a person sees first: how the ranks are divided, and the
// language module's grid. Rows in between are near relatives of an earlier one.
#pragma once

#include <vector>

#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// By row: whether no earlier one is of its shape.
std::vector<bool> leading_rows(const Sweep& sweep, const Model& model);

}  // namespace polyphony::sim
