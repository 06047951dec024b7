// Memory of a layout's worst rank, in closed form: what its stages hold (shared/screen/stage_memory.h)
// at the moments of its actions (shared/screen/action_moments.h).
#pragma once

#include <optional>
#include <vector>

#include "shared/screen/bound.h"
#include "shared/screen/layout_view.h"
#include "shared/screen/stage_memory.h"

namespace polyphony {

// Views, layers and stack must outlive it.
class LayoutMemory {
 public:
  LayoutMemory(const LayoutViews& views, const StackLayers& layers, const SoftwareStack& stack)
      : views_(views), memories_(layers, stack) {}
  Footprint worst(const LayoutView& view);
  // Of the rank that holds the stage.
  Bytes of(const LayoutView& view, StageOfBranch stage);
  // One branch's bytes alone.
  void add_part(const LayoutView& view, std::size_t branch, PartBound& part);

 private:
  void start(const LayoutView& view);
  // `part`: of this branch alone, at least.
  Bytes held(const LayoutView& view, const RankMoments& rank, std::optional<std::size_t> part = {});
  Bytes held_in_action(const LayoutView& view, const RankMoments& rank) const;

  const LayoutViews& views_;
  StageMemories memories_;
  // Of the rank in hand, or more; mostly as those of the rank before.
  std::vector<StageMemory> stages_;
  std::vector<StageOfBranch> known_;  // whose they are, in this view
};

}  // namespace polyphony
