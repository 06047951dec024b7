#include "shared/search/stage_memory.h"

#include <algorithm>

#include "shared/layers/rows.h"
#include "shared/layers/sizes.h"
#include "shared/plan/step_plan.h"

namespace polyphony {

Bytes StageMemory::held(const InFlight& works_in_flight) const {
  Bytes bytes = (weights * std::int64_t{works_in_flight.weights} -
                 kept * std::int64_t{works_in_flight.both}) /
                std::int64_t{works};
  if (works_in_flight.tapes > 0)
    bytes += largest + lane * std::int64_t{works_in_flight.tapes - 1} / std::int64_t{works};
  return bytes;
}

StageMemory StageMemories::memory(const LayoutView& view, std::size_t branch, std::size_t stage) {
  const NumberFormat precision = layers_.scenario().training.precision;
  const ModuleLayout& grid = view.plan.branches[branch].grid;
  StageMemory memory;
  // widest: a boundary of the largest work item; whole: what a sharded chunk gathers to run.
  Bytes widest{}, rebuilt{}, whole{};
  for (const Chunk& chunk : (*view.stages)[branch][stage].chunks) {
    const ModuleLoad& load = (*view.loads)[branch][chunk.module.value];
    const Module& module = layers_.module(chunk.module);
    const ModuleLayout& layout = view.layout->modules[chunk.module.value];
    const HeldElements local = layers_.parameters_of(chunk, grid.tp);
    const HeldBytes held = held_bytes(local, layout.shard, grid.dp(), 0, precision);
    memory.fixed += held.values + held.gradient + held.optimizer;
    whole = std::max(whole, held.gathered + held.whole_gradient);
    widest = std::max(widest, size_of(precision) * (load.largest.tokens * output_width(module)));
    if (!needs_backward(layers_.scenario().model, chunk.module)) continue;
    const Tapes& per_layer = tapes(view, branch, chunk.module);
    const StackLayers::Counts counts = layers_.count(chunk, layout);
    memory.works = std::max(1, load.works);
    for (std::size_t position = 0; position < StackLayers::kPositions; ++position) {
      memory.largest += per_layer.largest[position] * counts[position];
      memory.lane += per_layer.lane[position] * counts[position];
      memory.weights += per_layer.weights[position] * counts[position];
      memory.kept += per_layer.kept[position] * counts[position];
    }
    if (counts[StackLayers::kRecomputed] > 0) rebuilt = std::max(rebuilt, per_layer.rebuilt);
  }
  // Input and output of the chunk that runs, and received ahead: kReceiveSlots.
  memory.transient = rebuilt + whole + widest * std::int64_t{2 + kReceiveSlots};
  return memory;
}

const StageMemories::Tapes& StageMemories::tapes(const LayoutView& view, std::size_t branch,
                                                 ModuleId id) {
  const LayerCut cut(view.layout->modules[id.value]);
  const auto [known, added] = tapes_.try_emplace({view.key, branch, id.value, cut});
  if (added) known->second = tapes((*view.loads)[branch][id.value], id, cut);
  return known->second;
}

StageMemories::Tapes StageMemories::tapes(const ModuleLoad& load, ModuleId id,
                                          const LayerCut& cut) const {
  Tapes tapes;
  const Module& module = layers_.module(id);
  for (std::size_t position = 0; position < StackLayers::kPositions; ++position) {
    const ChunkContext context = layers_.context_at(id, position, cut);
    const std::vector<StackLayers::Alike> kinds = layers_.at(id, position);
    const auto mean = [&](auto bytes_of) {
      Bytes bytes{};
      std::int64_t count = 0;
      for (const StackLayers::Alike& alike : kinds) {
        bytes += bytes_of(alike.layer) * std::int64_t{alike.count};
        count += alike.count;
      }
      return bytes / count;
    };
    const auto of_total = [&](auto bytes_of) {
      return mean([&](LayerRange layer) { return bytes_of(module, layer, load.total, context); });
    };
    tapes.largest[position] =
        mean([&](LayerRange layer) { return tape_bytes(module, layer, load.largest, context); });
    tapes.lane[position] = of_total(tape_bytes);
    tapes.weights[position] = of_total(held_for_weights);
    tapes.kept[position] = of_total(kept_for_weights);
    if (position == StackLayers::kRecomputed)
      tapes.rebuilt = mean(
          [&](LayerRange layer) { return workspace_bytes(module, layer, load.largest, context); });
  }
  return tapes;
}

}  // namespace polyphony
