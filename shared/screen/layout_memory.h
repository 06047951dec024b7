// The memory of a layout's worst rank, in closed form: what its stages hold
// (shared/screen/stage_memory.h) at the moments of its actions (shared/screen/action_moments.h).
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
  // Returns the footprint of the worst rank.
  Footprint worst(const LayoutView& view);
  // Returns the memory of the rank that holds the stage.
  Bytes of(const LayoutView& view, StageOfBranch stage);
  // Sets the bytes of `part`: those of one branch alone.
  void add_part(const LayoutView& view, std::size_t branch, PartBound& part);

 private:
  void start(const LayoutView& view);
  // Returns the bytes of a rank; with `part`, a lower bound for that branch alone.
  Bytes held(const LayoutView& view, const RankMoments& rank, std::optional<std::size_t> part = {});
  // Returns the bytes of a lane that has the largest work of the branch `largest`; absent if they
  // are not known.
  std::optional<Bytes> held_with_largest(const LayoutView& view, const RankMoments& rank,
                                         std::size_t largest);
  // Sets stages_[i] to the memory of the rank's i-th stage.
  void set_stage(const LayoutView& view, const RankMoments& rank, std::size_t i, bool least);
  // Returns the most that the works of stages_ hold at any moment.
  Bytes at_moments(const RankMoments& rank) const;
  // Returns a lower bound that counts the largest work of each encoder on the language module's
  // ranks: some lane has it, on the ranks of some stage.
  Bytes with_largest(const LayoutView& view);
  Bytes held_in_action(const LayoutView& view, const RankMoments& rank) const;

  const LayoutViews& views_;
  StageMemories memories_;
  // Stages of the current rank, or more of them; mostly the same as for the rank before.
  std::vector<StageMemory> stages_;
  std::vector<StageOfBranch> known_;  // which stages these are, in this view
};

}  // namespace polyphony
