// The layouts one step away from a layout: what a search climbs over.
//   One coordinate of one module changes: tp, cp, pp, ep by a prime factor (dp follows; pp and vpp
//   also against each other, tp and cp against pp), vpp, expert_tp, sp, tp_pieces, shard, shard_ranks,
//   recompute, its range by an end, tokens, spread, `blocks` by one block; or of the layout:
//   schedule, microbatches, encoder works, bridge, how many ranks an encoder has.
//   What must follow does: samples per microbatch stay, so that microbatches follow dp; a schedule
//   that the new shape cannot run becomes the nearest that it can; a homogeneous layout has one
//   grid, a projector its source's; `blocks` of another number of stages become the plan's own.
#pragma once

#include <vector>

#include "shared/model/layout.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// All legal, all different, none equal to `layout`, in a fixed order. Needs a layout that
// check_layout() accepts, without actions of its own.
std::vector<Layout> neighbours(const Scenario& scenario, const Layout& layout);

}  // namespace polyphony
