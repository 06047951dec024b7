#include "shared/screen/parameter_counts.h"

#include <algorithm>

namespace polyphony {

ChunkElements LayerParameterCounts::of(const StackLayers::Counts& counts) const {
  ChunkElements sum;
  for (std::size_t p = 0; p < layers.size(); ++p) {
    if (counts[p] == 0) continue;
    sum.dense.trained += layers[p].dense.trained * counts[p];
    sum.dense.frozen += layers[p].dense.frozen * counts[p];
    sum.experts.trained += layers[p].experts.trained * counts[p];
    sum.experts.frozen += layers[p].experts.frozen * counts[p];
  }
  if (counts[StackLayers::kFirst] > 0 && counts[StackLayers::kLast] > 0)
    sum.dense.trained -= copied;
  return sum;
}

const LayerParameterCounts& ParameterCounts::of(ModuleId id, const ModuleLayout& grid) {
  const int expert_tp = grid.experts_tp() == 1 ? 1 : grid.tp;
  key_ = {static_cast<int>(id.value), grid.tp, grid.ep, expert_tp};
  return known_.get(key_, [&] {
    const Module& module = layers_.module(id);
    const ShardIndex dense{.tensor = grid.tp}, spread{.tensor = expert_tp, .expert = grid.ep};
    LayerParameterCounts result;
    for (std::size_t position = 0; position < layers_.positions(id); ++position) {
      ChunkElements& of = result.layers.emplace_back();
      if (position == StackLayers::kLast && layers_.size(id) == 1) continue;
      for (const Parameter& p : parameters(module, layers_.at(id, position))) {
        const std::int64_t count = p.local_count(p.expert ? spread : dense);
        HeldElements& elements = p.expert ? of.experts : of.dense;
        (p.trained ? elements.trained : elements.frozen) += count;
        if (position == StackLayers::kLast && p.copy) result.copied += count;
      }
    }
    return result;
  });
}

StateDivision division_of(const ModuleLayout& grid, Shard shard, bool experts) {
  const bool spread = grid.experts_tp() == 1;
  StateDivision division;
  division.stride = grid.tp;
  if (experts && (grid.ep > 1 || (spread && grid.tp > 1)))
    division.stride = spread ? grid.ep : grid.ep * grid.tp;
  const int copies = grid.ranks / grid.pp / division.stride;
  if (shard != Shard::none) {
    division.shards = copies;
    if (grid.shard_ranks > 0) division.shards = std::min(copies, grid.shard_ranks);
  }
  division.replicas = copies / division.shards;
  return division;
}

}  // namespace polyphony
