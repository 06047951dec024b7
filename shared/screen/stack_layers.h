// The distinct layers of a module's stack, and how many of each a run of layers has. This is enough
// to sum over the stack without visiting it. A position names one kind of layer: the first layer,
// the last, and, for each kind of block, the blocks that are recomputed and those that are not.
#pragma once

#include <array>
#include <vector>

#include "shared/chunk/expand.h"
#include "shared/plan/plan.h"
#include "shared/scenario/scenario.h"
#include "shared/screen/known.h"

namespace polyphony {

// The fields of a grid that the cost of one layer on one rank depends on. Closed forms of layers
// are remembered by these fields, and are given nothing else.
struct LayerCut {
  explicit LayerCut(const ModuleLayout& grid)
      : tp(grid.tp),
        cp(grid.cp),
        ep(grid.ep),
        expert_tp(grid.experts_tp()),
        sp(grid.sp && grid.tp > 1),
        tp_pieces(grid.tp_pieces),
        recompute(grid.recompute),
        cp_attention(grid.cp_attention),
        cp_heads(grid.cp_heads) {}
  ModuleLayout grid() const;  // a grid with these fields
  void add_to(Key& key) const;

  int tp, cp, ep, expert_tp;
  bool sp;
  int tp_pieces;
  Recompute recompute;
  ContextAttention cp_attention;
  int cp_heads;
};

// A run of one module's layers on a stage, cut where edges enter or leave. Where gradients are
// sharded, it is also cut at every block (shared/plan/plan.h).
using LayerRun = Chunk;

// The scenario must outlive it.
class StackLayers {
 public:
  static constexpr std::size_t kFirst = 0, kLast = 1, kBlocks = 2;
  static constexpr std::size_t kMost = kBlocks + 2 * 12;
  using Counts = std::array<std::uint16_t, kMost>;

  explicit StackLayers(const Scenario& scenario);

  const Scenario& scenario() const { return scenario_; }
  const Module& module(ModuleId id) const { return scenario_.model.modules[id.value]; }
  int size(ModuleId id) const { return stacks_[id.value].size; }
  std::size_t positions(ModuleId id) const { return kBlocks + 2 * stacks_[id.value].kinds.size(); }
  // Returns how many layers of each position a run has. `again`: the layers that are recomputed.
  Counts count(const LayerRun& run, LayerRange again) const;
  // Returns whether two runs have the same layers in the same order; may return false if that would
  // take long to find out.
  bool alike(const LayerRun& a, const LayerRun& b, LayerRange again) const;
  // Returns one layer of a position; for blocks, the first of its kind.
  LayerRange at(ModuleId module, std::size_t position) const;
  // Returns the position of a layer.
  std::size_t position_of(ModuleId module, int layer, LayerRange again) const;
  static bool recomputed(std::size_t position) {
    return position >= kBlocks && (position - kBlocks) % 2 == 1;
  }
  // Returns the context in which the layer at a position runs. Rows that edges bring to inner
  // layers are not counted.
  ChunkContext context_at(ModuleId module, std::size_t position, const LayerCut& cut) const;
  // Visits the chunks of a run as (begin, end). There is one chunk unless the run is cut by blocks.
  template <class Visit>
  void each_chunk(const LayerRun& run, bool by_blocks, Visit visit) const {
    if (!by_blocks) return visit(run.layers);
    const int blocks_end = 1 + module(run.module).layers;
    for (int begin = run.layers.begin; begin < run.layers.end;) {
      // Input layers share a chunk with the next block, output layers with the previous one.
      int end = begin == 0 ? 2 : begin + 1;
      if (end >= blocks_end || end > run.layers.end) end = run.layers.end;
      visit(LayerRange{static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(end)});
      begin = end;
    }
  }

 private:
  struct Kind {
    BlockKind kind;
    bool starts = false;                // a backward may stop here: nothing before it trains
    int first = 0;                      // layer
    std::vector<std::uint16_t> before;  // by layer: number of layers of the kind before it
  };
  struct Stack {
    int size = 0;
    std::vector<Kind> kinds;
  };

  const Scenario& scenario_;
  std::vector<Stack> stacks_;  // by module
};

// Returns the layers of a module that a layout recomputes; an empty range if there are none.
LayerRange recomputed_range(const ModuleLayout& layout);

}  // namespace polyphony
