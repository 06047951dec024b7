// Memory of a layout's worst rank, in closed form: what its stages hold (shared/search/stage_memory.h)
// at the moments of its turns (shared/search/turn_moments.h).
#pragma once

#include <vector>

#include "shared/search/bound.h"
#include "shared/search/layout_view.h"
#include "shared/search/stage_memory.h"

namespace polyphony {

// Views, layers and stack must outlive it.
class LayoutMemory {
 public:
  LayoutMemory(const LayoutViews& views, const StackLayers& layers, const SoftwareStack& stack)
      : views_(views), memories_(layers, stack) {}
  Footprint worst(const LayoutView& view);
  // The most that a rank holds of one branch; where it has others too, what of this one is always
  // there.
  Bytes of_branch(const LayoutView& view, std::size_t branch);

 private:
  Bytes held(const LayoutView& view, const RankMoments& rank);
  Bytes held_in_turn(const LayoutView& view, const RankMoments& rank) const;

  const LayoutViews& views_;
  StageMemories memories_;
  std::vector<StageMemory> stages_;  // of the rank in hand, or more
};

}  // namespace polyphony
