// The neighbors of a layout: all layouts one step away from it. A local search moves along them.
//   One coordinate changes. Of one module: tp, cp, pp, ep by a prime factor (dp follows; pp is also
//   traded against vpp, tp and cp), vpp, expert_tp, sp, tp_pieces, shard, shard_ranks, recompute,
//   one end of the range of recomputed blocks, tokens, spread, `blocks` by one block. Of the
//   layout: schedule, microbatches, encoder microbatches, bridge, the number of ranks of an
//   encoder.
//
//   Dependent fields follow. Samples per microbatch stay the same, so that microbatches follow dp.
//   A schedule that the new shape cannot run is replaced by the nearest one that it can. A
//   homogeneous layout has one grid, and a projector has its source's. If the number of stages
//   changes, `blocks` becomes the plan's own split.
#pragma once

#include <vector>

#include "shared/model/layout.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// Returns the neighbors: all legal, all different, none equal to `layout`, in a fixed order.
// `layout` must be legal (check_layout()) and have no actions of its own.
std::vector<Layout> neighbours(const Scenario& scenario, const Layout& layout);

}  // namespace polyphony
