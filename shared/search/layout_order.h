// The order in which equally good layouts are preferred: the simplest first, with the fewest
// degrees of parallelism. Rows of the table of fields (shared/model/layout_fields.h) state their
// places.
#pragma once

#include "shared/model/layout.h"

namespace polyphony {

// Return whether `a` is simpler than `b`; total orders of layouts and grids, in which only equal
// ones are equally simple.
bool simpler(const Layout& a, const Layout& b);
bool simpler(const ModuleLayout& a, const ModuleLayout& b);

}  // namespace polyphony
