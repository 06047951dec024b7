// Reduces recomputation to what memory requires: between recomputing all blocks, which fits, and
// none, which does not.
//   The first blocks recompute, because early stages hold the most saved activations. In a
//   homogeneous layout these are the first blocks of the whole chain, encoders first; otherwise one
//   module is reduced after the other, the language module first.
#pragma once

#include <optional>
#include <vector>

#include "shared/screen/bound.h"
#include "shared/search/space.h"

namespace polyphony {

// Returns the variant of `layout`, which fits into `capacity`, that recomputes the least. `none` is
// the same layout with recomputation off where that may be chosen. Nothing if some module could do
// entirely without, or if all blocks of all modules must recompute.
std::optional<Layout> least_recompute(const Scenario& scenario, const Layout& layout,
                                      const Layout& none, Bytes capacity, Screen& screen);

// Returns variants that recompute more, for a layout whose Program does not fit although the screen
// predicted that it would. Each variant needs at most `target` bytes by the screen. There is one
// for each kind of recomputation that may be chosen, or only one of the kind that the layout
// already uses for some blocks.
std::vector<Layout> recompute_more(const Scenario& scenario, const Space& space,
                                   const Layout& layout, Bytes target, Screen& screen);

}  // namespace polyphony
