// The bytes on one rank of a pipeline stage, in closed form: the same saved activations, parameters
// and buffers that lowering counts (shared/lower/rank_lowering.cpp), summed by kinds of layers.
//   The result never exceeds the Program's peak. Omitted is what depends on when transfers run:
//   rows received ahead or not yet sent; activations being copied to the host; parameters gathered
//   and gradients scattered in parallel with ops, where lanes may differ. Also omitted are rows
//   that a bridge's leader collects, and rows that edges bring to inner layers.
//
//   Other software stacks are counted as in shared/held/stack_sizes.h. Source: own count.
#pragma once

#include <vector>

#include "shared/chunk/held_sizes.h"
#include "shared/held/stack_sizes.h"
#include "shared/screen/layout_view.h"
#include "shared/screen/parameter_counts.h"
#include "shared/screen/stack_layers.h"

namespace polyphony {

// Memory of one work on one stage.
struct WorkMemory {
  // Saved activations, with the inputs that stay: from the forward to the end of the backward, or
  // of its input part.
  Bytes tape{};
  // What the weight part of a split backward needs: from the input part to its own end.
  Bytes weights{};
  // The bytes that `tape` and `weights` have in common. While an input part runs, they are counted
  // once: tape + weights - both (InFlight::both in shared/schedule/orders.h).
  Bytes both{};
  // By ActionKind: what the rank holds while an action of this kind runs, in addition to `tape` and
  // `weights` of all works in flight, the running one included. This is the most over the chunks of
  // the stage: rows that arrive and leave, workspace, gathered parameters, gradients before they
  // are sharded; less what the action has not saved yet, or has already freed. May be negative.
  Bytes transient[4] = {};
};
struct StageMemory {
  Bytes fixed{};  // parameters, gradients, optimizer state
  // By kind of work (shared/screen/branch_loads.h); one entry if all are equal.
  std::vector<WorkMemory> works;
};

// The layers must outlive it.
class StageMemories {
 public:
  StageMemories(const StackLayers& layers, const SoftwareStack& stack);
  // Computes the memory of a stage. `shared`: another branch is on the same ranks, so that the
  // column is not known, and the smallest one is assumed.
  void memory(const LayoutView& view, StageOfBranch stage, bool shared, StageMemory& memory);
  // Must be called before the first stage of a view.
  void start(const LayoutView& view);
  // Returns whether the memory of both stages is known to be equal.
  bool alike(const LayoutView& view, StageOfBranch a, StageOfBranch b) const;
  // Returns what another software stack keeps resident throughout, in addition to its state.
  Bytes standing(const LayoutView& view, const RankMoments& rank);

 private:
  // Bytes of one layer, and of the rows that flow into and out of runs of layers.
  struct Layer {
    std::int64_t tape = 0, input = 0, weights = 0;
    std::int64_t forward = 0, loss = 0, rebuilt = 0, made = 0;  // in addition, while it runs
  };
  struct Flows {
    std::int64_t inside = 0, in = 0, out = 0;  // between blocks; into the first; out of the last
    // Conditioning of a diffusion module: what its blocks read; the part that arrived as such; what
    // weight parts wait with; the size on arrival.
    std::int64_t condition = 0, condition_kept = 0, condition_weights = 0, condition_in = 0;
  };
  struct Held {
    std::vector<Layer> layers;  // by position
    Flows flows;
    std::int64_t tied = 0;  // of `weights`: counted once in a chunk with both ends of a tied matrix
  };
  struct Chunk {
    std::int64_t tape = 0, both = 0, weights = 0, forward = 0, loss = 0, rebuilt = 0, made = 0;
    std::int64_t in = 0, out = 0, back = 0;  // rows that arrive; output rows; gradients returned
    bool visited = false;
    bool goes_on = false;  // all of its output goes to the next chunk
  };
  struct State {
    Bytes held{}, gathered{}, whole{};
  };

  // Returns the bytes by kind of work; one entry, the smallest, if it represents all.
  const std::vector<Held>& tapes(const LayoutView& view, std::size_t branch, ModuleId id,
                                 bool shared);
  // Tables for the current view, by module, looked up once.
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
  MemoTable<std::vector<Held>> tapes_;
  MemoTable<MatrixShapes> shapes_;
  ParameterCounts parameters_;
  std::vector<Found> found_;
  // Of the current stage, in the order of a forward.
  std::vector<State> states_;
  std::vector<Chunk> chunks_;
  Key key_;
};

}  // namespace polyphony
