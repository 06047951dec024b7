// What a stage holds all the time, and what is gathered of it: shared/screen/stage_memory.h.
#include <algorithm>
#include <utility>

#include "shared/screen/stage_memory.h"

namespace polyphony {
namespace {

struct Layers {
  std::int64_t largest = 0, next = 0;  // elements of two layers
};
Layers largest_of(const LayerParameterCounts& of, bool experts, const StackLayers::Counts& counts) {
  Layers most;
  for (std::size_t p = 0; p < of.layers.size(); ++p)
    for (int i = 0; i < std::min<int>(2, counts[p]); ++i) {
      const HeldElements& one = experts ? of.layers[p].experts : of.layers[p].dense;
      std::int64_t elements = one.trained + one.frozen;
      if (elements > most.largest) std::swap(elements, most.largest);
      most.next = std::max(most.next, elements);
    }
  return most;
}

}  // namespace

StageMemories::State StageMemories::state(const LayerParameterCounts& of, const ModuleLayout& grid,
                                          Shard shard, const StackLayers::Counts& counts) const {
  const NumberFormat precision = layers_.scenario().training.precision;
  const ChunkElements elements = of.of(counts);
  State state;
  for (const bool experts : {false, true}) {
    const HeldElements& sum = experts ? elements.experts : elements.dense;
    if (sum.trained + sum.frozen == 0) continue;
    const int shards = division_of(grid, shard, experts).shards;
    HeldBytes bytes = stack_held_bytes(stack_, sum, shard, shards, 0, precision);
    if (of_another_stack() && shards > 1) {  // by layer
      const Layers layers = largest_of(of, experts, counts);
      if (shard == Shard::full && grid.pp == 1)
        bytes.gathered = size_of(precision) * (layers.largest + layers.next);
      else if (shard == Shard::full)
        bytes.gathered = size_of(precision) * (sum.trained + sum.frozen);
      if (shard >= Shard::gradients && sum.trained > 0)
        bytes.whole_gradient = (size_of(precision) + gradient_size(precision)) * layers.largest +
                               gradient_size(precision) * layers.next;
    }
    state.held += bytes.values + bytes.gradient + bytes.optimizer;
    state.gathered += bytes.gathered;
    state.whole += bytes.whole_gradient;
  }
  return state;
}

Bytes StageMemories::standing(const LayoutView& view, const RankMoments& rank) {
  if (!of_another_stack()) return {};
  MatrixShapes shapes;
  std::int64_t rows = 0;
  for (const StageOfBranch& stage : rank.stages) {
    const BranchView& branch = view.branches[stage.branch];
    for (const LayerRun& run : (*branch.stages)[stage.stage]) {
      const Module& module = layers_.module(run.module);
      const ModuleLayout& layout = view.layout->modules[run.module.value];
      const StackLayers::Counts counts = layers_.count(run, {});
      const bool heads = module.kind == ModuleKind::language && counts[StackLayers::kLast] > 0;
      for (std::size_t position = 0; position < layers_.positions(run.module); ++position) {
        if (counts[position] == 0) continue;
        const MatrixShapes& of = shapes_of(run.module, position, layout, heads);
        shapes.insert(shapes.end(), of.begin(), of.end());
      }
      if (!heads || !layout.sp || layout.tp == 1 || module.trainable == Trainable::frozen) continue;
      for (const WorkSize& size : branch.load->modules[run.module.value].sizes)
        rows = std::max(rows, size.tokens * module.hidden);
    }
  }
  return standing_bytes(stack_, std::move(shapes), rows, layers_.scenario().training.precision);
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
