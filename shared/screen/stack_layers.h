// The different layers of a module's stack, and how many of each a run of layers has: enough to sum
// over the stack without visiting it. Positions: the first layer, the last, and of each kind of
// block those that are kept and those that are recomputed.
#pragma once

#include <array>
#include <vector>

#include "shared/chunk/expand.h"
#include "shared/plan/plan.h"
#include "shared/scenario/scenario.h"
#include "shared/screen/known.h"

namespace polyphony {

// All of a grid that what one layer costs on one rank depends on: closed forms of layers are
// remembered by it, and are given nothing else.
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
  ModuleLayout grid() const;  // one of those that are cut so
  void add_to(Key& key) const;

  int tp, cp, ep, expert_tp;
  bool sp;
  int tp_pieces;
  Recompute recompute;
  ContextAttention cp_attention;
  int cp_heads;
};

// A run of one module's layers on a stage, cut where edges enter or leave; where gradients are
// divided, at every block, too (shared/plan/plan.h).
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
  // `again`: the layers that the layout recomputes.
  Counts count(const LayerRun& run, LayerRange again) const;
  // Whether two runs have the same layers in the same order; false where that takes longer to say.
  bool alike(const LayerRun& a, const LayerRun& b, LayerRange again) const;
  // One layer of a position; of blocks the first of its kind.
  LayerRange at(ModuleId module, std::size_t position) const;
  // Of a layer.
  std::size_t position_of(ModuleId module, int layer, LayerRange again) const;
  static bool recomputed(std::size_t position) {
    return position >= kBlocks && (position - kBlocks) % 2 == 1;
  }
  // How the layer at a position runs. What edges bring inner layers is not counted.
  ChunkContext context_at(ModuleId module, std::size_t position, const LayerCut& cut) const;
  // The chunks of a run, each visited as (begin, end); one, unless it is cut by blocks.
  template <class Visit>
  void each_chunk(const LayerRun& run, bool by_blocks, Visit visit) const {
    if (!by_blocks) return visit(run.layers);
    const int blocks_end = 1 + module(run.module).layers;
    for (int begin = run.layers.begin; begin < run.layers.end;) {
      // An input clings to the block after it, a tail to the one before.
      int end = begin == 0 ? 2 : begin + 1;
      if (end >= blocks_end || end > run.layers.end) end = run.layers.end;
      visit(LayerRange{static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(end)});
      begin = end;
    }
  }

 private:
  struct Kind {
    BlockKind kind;
    bool starts = false;                // where a backward may stop: nothing before it trains
    int first = 0;                      // layer
    std::vector<std::uint16_t> before;  // by layer: of the kind before it
  };
  struct Stack {
    int size = 0;
    std::vector<Kind> kinds;
  };

  const Scenario& scenario_;
  std::vector<Stack> stacks_;  // by module
};

// The layers that a layout recomputes of a module; none: an empty range.
LayerRange recomputed_range(const ModuleLayout& layout);

}  // namespace polyphony
