// Bytes on one rank of a pipeline stage, in closed form. Remembers the tapes of each kind of layer per
// module, tensor-parallel size and cut. Source: own count, of what shared/plan/ lowers.
#pragma once

#include <array>
#include <map>
#include <tuple>

#include "shared/search/layout_view.h"
#include "shared/search/stack_layers.h"

namespace polyphony {

struct StageMemory {
  Bytes fixed{};    // parameters, gradients, optimizer state
  Bytes largest{};  // tape of the largest work item
  // Of a lane's work items together: tapes; what weight parts wait with; what of it is in the tapes.
  Bytes lane{}, weights{}, kept{};
  int works = 1;  // of a lane
  Bytes
      transient{};  // while an op runs: what recomputation rebuilds, boundaries and received ahead
  // The largest tape once, the others at the lane's mean.
  Bytes held(const InFlight& works_in_flight) const;
};

// The layers must outlive it.
class StageMemories {
 public:
  explicit StageMemories(StackLayers& layers) : layers_(layers) {}
  StageMemory memory(const LayoutView& view, std::size_t branch, std::size_t stage);

 private:
  // Of one module under one load, by position.
  struct Tapes {
    using Each = std::array<Bytes, StackLayers::kPositions>;
    Each largest, lane;  // of the largest work item; of the busiest lane's together
    Each weights, kept;  // likewise: what weight parts of their own wait with, and what of it is in
                         // the tape
    Bytes rebuilt;       // what a recomputed block makes in its backward
  };
  const Tapes& tapes(const LayoutView& view, std::size_t branch, ModuleId module);
  Tapes tapes(const ModuleLoad& load, ModuleId module, const LayerCut& cut) const;

  StackLayers& layers_;
  // By load, branch, module and cut.
  std::map<std::tuple<LayoutView::Key, std::size_t, std::uint32_t, LayerCut>, Tapes> tapes_;
};

}  // namespace polyphony
