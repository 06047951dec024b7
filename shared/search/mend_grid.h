// Consequences of a change of one module's grid, in that grid and in those that share it.
#pragma once

#include "shared/model/layout.h"

namespace polyphony {

// Returns the largest divisor of `value` that is at most `most`.
int divisor_below(int value, int most);
// Copies the fields that the modules of a homogeneous layout, or a projector and its source, have
// in common.
void copy_grid(const ModuleLayout& from, ModuleLayout& to);
// Drops or rounds fields that the grid's shape no longer allows. Returns false if the grid's ranks
// cannot have this shape.
bool mend(ModuleLayout& grid);

}  // namespace polyphony
