// Recomputing no more than memory asks for: between all blocks, which fits, and none, which does not.
//   The first blocks recompute: early stages hold the most tapes. Of a homogeneous layout those of the
//   whole chain, encoders first; otherwise of one module after the other, the language module's first.
#pragma once

#include <optional>

#include "shared/search/bound.h"

namespace polyphony {

// Of a layout that fits into `capacity`, and `none`, which recomputes nothing where that may be chosen.
// Nothing where some module could do without, or all blocks of all must.
std::optional<Layout> least_recompute(const Scenario& scenario, const Layout& layout,
                                      const Layout& none, Bytes capacity, Screen& screen);

}  // namespace polyphony
