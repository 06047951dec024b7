// What follows from a change of one module's grid, in the grid itself and in those that share it.
#pragma once

#include "shared/model/layout.h"

namespace polyphony {

// The largest divisor of `value` that is at most `most`.
int divisor_below(int value, int most);
// All that a homogeneous layout's modules, or a projector and its source, have in common.
void copy_grid(const ModuleLayout& from, ModuleLayout& to);
// Drops or rounds what the grid's shape no longer allows. False: its ranks cannot have the shape.
bool mend(ModuleLayout& grid);

}  // namespace polyphony
