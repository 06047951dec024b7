// Bytes on one rank of a pipeline stage, in closed form: the same layers' tapes, parameters and
// buffers that lowering counts (shared/lower/rank_lowering.cpp), summed by kinds of layers. Never more
// than the Program's peak: what depends on when transfers run is left out (rows received ahead or
// not yet sent; tapes that the host takes; parameters gathered and gradients scattered beside ops, where lanes may differ), as
// is what a bridge's leader collects and what edges bring inner layers. Of another software stack as
// shared/held/stack_sizes.h counts it. Source: own count.
#pragma once

#include <vector>

#include "shared/chunk/held_sizes.h"
#include "shared/held/stack_sizes.h"
#include "shared/screen/layout_view.h"
#include "shared/screen/parameter_counts.h"
#include "shared/screen/stack_layers.h"

namespace polyphony {

// Of one work.
struct WorkMemory {
  // Tapes with the inputs that stay; what weight parts wait with; what of it is in the tapes.
  Bytes tape{}, weights{}, kept{};
  // Besides, while an action of a kind runs, less what of the work is gone or not there yet.
  Bytes transient[4] = {};
};
struct StageMemory {
  Bytes fixed{};                  // parameters, gradients, optimizer state
  std::vector<WorkMemory> works;  // by kind (shared/screen/branch_loads.h); one: all are alike
};

// The layers must outlive it.
class StageMemories {
 public:
  StageMemories(const StackLayers& layers, const SoftwareStack& stack);
  // `beside`: the column is not known, because another branch has the same ranks: the least stands
  // for it.
  void memory(const LayoutView& view, StageOfBranch stage, bool beside, StageMemory& memory);
  // Before the first stage of a view.
  void start(const LayoutView& view);
  // Whether that is known to be the same for both stages.
  bool alike(const LayoutView& view, StageOfBranch a, StageOfBranch b) const;
  // What another software stack keeps all the time beside its state.
  Bytes standing(const LayoutView& view, const RankMoments& rank);

 private:
  // Of one layer, and of what flows into and out of runs of layers; bytes.
  struct Layer {
    std::int64_t tape = 0, input = 0, weights = 0;
    std::int64_t forward = 0, loss = 0, rebuilt = 0, made = 0;  // besides, while it runs
  };
  struct Flows {
    std::int64_t inside = 0, in = 0, out = 0;  // between blocks; into the first layer; of the last
    // Of a diffusion module: what its blocks read; of it, what arrived so; what weight parts wait with; as
    // it arrives.
    std::int64_t condition = 0, condition_kept = 0, condition_weights = 0, condition_in = 0;
  };
  struct Held {
    std::vector<Layer> layers;  // by position
    Flows flows;
    std::int64_t tied = 0;  // of `weights`, what a chunk with both ends of a tied matrix has once
  };
  struct Chunk {
    std::int64_t tape = 0, kept = 0, weights = 0, forward = 0, loss = 0, rebuilt = 0, made = 0;
    std::int64_t in = 0, out = 0, back = 0;  // rows that arrive; of its output; gradients returned
    bool visited = false;
    bool goes_on = false;  // all that it leaves goes to the chunk after it
  };
  struct State {
    Bytes held{}, gathered{}, whole{};
  };

  // By kind of work; one, the smallest, where it stands for all.
  const std::vector<Held>& tapes(const LayoutView& view, std::size_t branch, ModuleId id,
                                 bool beside);
  // Of the view in hand, by module: found once.
  struct Found {
    const std::vector<Held>* tapes[2] = {};
    const LayerParameterCounts* elements = nullptr;
    LayerRange again;
  };
  Held held(ModuleId id, const LayerCut& cut, const WorkSize& size) const;
  Chunk chunk(const Held& held, ModuleId id, LayerRange range, const StackLayers::Counts& counts,
              LayerRange again) const;
  void add_besides(const Held& held, ModuleId id, LayerRange range,
                   const StackLayers::Counts& counts, LayerRange again, Chunk& chunk) const;
  State state(const LayerParameterCounts& of, const ModuleLayout& grid, Shard shard,
              const StackLayers::Counts& counts) const;
  std::int64_t ends(ModuleId module, const ModuleLayout& layout, const ModuleLayout& grid,
                    const StackLayers::Counts& counts);
  const MatrixShapes& shapes_of(ModuleId module, std::size_t position, const ModuleLayout& layout,
                                bool heads);
  bool of_another_stack() const { return stack_.memory.keeping != Keeping::polyphony; }

  WorkMemory work(bool in_step) const;

  const StackLayers& layers_;
  const SoftwareStack& stack_;
  std::vector<char> visited_, inputs_trained_;  // by module
  Known<std::vector<Held>> tapes_;
  Known<MatrixShapes> shapes_;
  ParameterCounts parameters_;
  std::vector<Found> found_;
  // Of the stage in hand, in the order of a forward.
  std::vector<State> states_;
  std::vector<Chunk> chunks_;
  Key key_;
};

}  // namespace polyphony
