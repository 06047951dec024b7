// Recomputing no more than memory asks for: between all blocks, which fits, and none, which does not.
//   The first blocks recompute: early stages hold the most tapes. Of a homogeneous layout those of the
//   whole chain, encoders first; otherwise of one module after the other, the language module's first.
#pragma once

#include <optional>
#include <vector>

#include "shared/screen/bound.h"
#include "shared/search/space.h"

namespace polyphony {

// Of a layout that fits into `capacity`, and `none`, which recomputes nothing where that may be chosen.
// Nothing where some module could do without, or all blocks of all must.
std::optional<Layout> least_recompute(const Scenario& scenario, const Layout& layout,
                                      const Layout& none, Bytes capacity, Screen& screen);

// Of a layout that does not fit though the screen says so, because a Program holds more: those that the
// screen sees at or below `target`, one for each kind of recomputation that may be chosen, of a kind that
// is partly chosen already the one.
std::vector<Layout> recompute_more(const Scenario& scenario, const Space& space,
                                   const Layout& layout, Bytes target, Screen& screen);

}  // namespace polyphony
