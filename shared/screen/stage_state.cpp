// The state that a stage holds throughout, and what is gathered of it
// (shared/screen/stage_memory.h).
#include <algorithm>
#include <utility>
#include <vector>

#include "shared/screen/stage_memory.h"

namespace polyphony {
namespace {

std::int64_t elements_of(const LayerParameterCounts& of, std::size_t position, bool experts) {
  const HeldElements& one = experts ? of.layers[position].experts : of.layers[position].dense;
  return one.trained + one.frozen;
}

// Returns the bytes of the two largest layers that are gathered one by one.
std::vector<std::int64_t> largest_units(const LayerParameterCounts& of, bool experts, bool ends,
                                        const StackLayers::Counts& counts) {
  std::vector<std::int64_t> units;
  for (std::size_t p = ends ? 0 : StackLayers::kBlocks; p < of.layers.size(); ++p)
    for (int i = 0; i < std::min<int>(2, counts[p]); ++i)
      if (const std::int64_t elements = elements_of(of, p, experts); elements > 0)
        units.push_back(elements);
  std::sort(units.rbegin(), units.rend());
  return units;
}

}  // namespace

StageMemories::State StageMemories::state(const LayerParameterCounts& of, const ModuleLayout& grid,
                                          Shard shard, const StackLayers::Counts& counts) const {
  const NumberFormat precision = layers_.scenario().training.precision;
  const ChunkElements elements = of.of(counts);
  const bool pipelined = grid.pp > 1, ends = stack_.memory.keeping != Keeping::fsdp;
  State state;
  for (const bool experts : {false, true}) {
    const HeldElements& sum = experts ? elements.experts : elements.dense;
    if (sum.trained + sum.frozen == 0) continue;
    const int shards = division_of(grid, shard, experts).shards;
    HeldBytes bytes = stack_held_bytes(stack_, sum, shard, shards, 0, pipelined, precision);
    if (of_another_stack() && shards > 1) {  // by layer
      const std::vector<std::int64_t> units = largest_units(of, experts, ends, counts);
      if (shard == Shard::full)
        bytes.gathered = stack_gathered_bytes(stack_, units, pipelined, precision);
      if (shard >= Shard::gradients && sum.trained > 0)
        bytes.whole_gradient = stack_whole_gradient_bytes(stack_, units, pipelined, precision);
    }
    state.held += bytes.values + bytes.gradient + bytes.optimizer;
    state.gathered += bytes.gathered;
    state.whole += bytes.whole_gradient;
  }
  return state;
}

// Returns the copies of what a fully sharded module gathers of its first and last layer.
std::int64_t StageMemories::ends(ModuleId id, const ModuleLayout& layout, const ModuleLayout& grid,
                                 const StackLayers::Counts& counts) {
  if (layout.shard != Shard::full || division_of(grid, layout.shard, false).shards < 2) return 0;
  const LayerParameterCounts& of = parameters_.of(id, layout);
  StackLayers::Counts of_ends{};
  of_ends[StackLayers::kFirst] = counts[StackLayers::kFirst];
  of_ends[StackLayers::kLast] = counts[StackLayers::kLast];
  const HeldElements sum = of.of(of_ends).dense;
  return end_copies(stack_, sum.trained + sum.frozen, grid.pp > 1);
}

Bytes StageMemories::standing(const LayoutView& view, const RankMoments& rank) {
  if (!of_another_stack()) return {};
  Standing standing;
  MatrixShapes& shapes = standing.shapes;
  for (const StageOfBranch& stage : rank.stages) {
    const BranchView& branch = view.branches[stage.branch];
    for (const LayerRun& run : (*branch.stages)[stage.stage]) {
      const Module& module = layers_.module(run.module);
      const ModuleLayout& layout = view.layout->modules[run.module.value];
      const StackLayers::Counts counts = layers_.count(run, {});
      standing.ends += ends(run.module, layout, *branch.grid, counts);
      const bool heads = module.kind == ModuleKind::language && counts[StackLayers::kLast] > 0;
      for (std::size_t position = 0; position < layers_.positions(run.module); ++position) {
        if (counts[position] == 0) continue;
        const MatrixShapes& of = shapes_of(run.module, position, layout, heads);
        shapes.insert(shapes.end(), of.begin(), of.end());
      }
      if (!heads || !layout.sp || layout.tp == 1 || module.trainable == Trainable::frozen) continue;
      for (const WorkSize& size : branch.load->modules[run.module.value].sizes)
        standing.rows = std::max(standing.rows, size.tokens * module.hidden);
    }
  }
  return standing_bytes(stack_, std::move(standing), layers_.scenario().training.precision);
}

const MatrixShapes& StageMemories::shapes_of(ModuleId id, std::size_t position,
                                             const ModuleLayout& layout, bool heads) {
  key_ = {static_cast<int>(id.value),
          static_cast<int>(position),
          layout.tp,
          layout.ep,
          layout.experts_tp(),
          heads ? 1 : 0};
  return shapes_.get(key_, [&] {
    MatrixShapes found;
    for (const bool experts : {false, true}) {
      std::vector<Parameter> list = parameters(layers_.module(id), layers_.at(id, position));
      std::erase_if(list, [&](const Parameter& p) { return p.expert != experts; });
      const int tp = experts && layout.experts_tp() == 1 ? 1 : layout.tp;
      add_matrix_shapes(list, {.tensor = tp, .expert = layout.ep}, heads, found);
    }
    return found;
  });
}

}  // namespace polyphony
