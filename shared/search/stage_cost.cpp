#include "shared/search/stage_cost.h"

#include <algorithm>

#include "shared/cost/layer_costs.h"

namespace polyphony {

StageCosts::StageCosts(StackLayers& layers, const HardwareProfile& profile, const Batch& batch)
    : layers_(layers),
      scenario_(layers.scenario()),
      profile_(profile),
      coupled_(std::all_of(batch.samples.begin(), batch.samples.end(),
                           [](const Sample& sample) { return image_patches(sample) > 0; })) {}

LayerTimes& LayerTimes::operator+=(const LayerTimes& other) {
  lane += other.lane;
  forward += other.forward;
  backward += other.backward;
  full_forward += other.full_forward;
  full_backward += other.full_backward;
  return *this;
}

LayerTimes LayerTimes::operator*(int times) const {
  return {lane * times, forward * times, backward * times, full_forward * times,
          full_backward * times};
}

StageCost StageCosts::cost(const LayoutView& view, std::size_t branch, std::size_t stage) {
  StageCost cost;
  add_times(view, branch, stage, cost);
  add_parameters(view, branch, stage, cost);
  return cost;
}

Seconds StageCosts::scalar_time(int ranks) {
  const auto [known, added] = scalars_.try_emplace(ranks);
  if (added) {
    std::vector<Rank> world;
    for (int r = 0; r < ranks; ++r) world.emplace_back(static_cast<std::size_t>(r));
    known->second = ring_time(make_ring(world, scenario_.cluster, profile_),
                              CollectiveKind::all_reduce, Bytes(3 * 8));
  }
  return known->second;
}

const StageCosts::Times& StageCosts::times(const LayoutView& view, std::size_t branch,
                                           ModuleId id) {
  const LayerCut cut(view.layout->modules[id.value]);
  const auto [known, added] = times_.try_emplace({view.key, branch, id.value, cut});
  if (added) {
    for (std::size_t position = 0; position < StackLayers::kPositions; ++position) {
      if (position == StackLayers::kRecomputed && cut.recompute == Recompute::none) continue;
      known->second[position] = time_position((*view.loads)[branch][id.value], id, position, cut);
    }
  }
  return known->second;
}

const Ring& StageCosts::gradient_ring(const ModuleLayout& grid, int index) {
  const Rank first = grid.rank_at(0, 0, 0, index);
  const int at = static_cast<int>(first.value);
  const int place = scenario_.cluster.flat() ? at % scenario_.cluster.ranks_per_node : at;
  const auto [known, added] = rings_.try_emplace({place, grid.tp * grid.cp, grid.dp()});
  if (added) {
    std::vector<Rank> members;
    for (int d = 0; d < grid.dp(); ++d) members.push_back(grid.rank_at(0, 0, d, index));
    known->second = make_ring(members, scenario_.cluster, profile_);
  }
  return known->second;
}

LayerTimes StageCosts::time_position(const ModuleLoad& load, ModuleId id, std::size_t position,
                                     const LayerCut& cut) const {
  const std::vector<StackLayers::Alike> kinds = layers_.at(id, position);
  LayerTimes least = time_layer(load, id, kinds.front().layer, position, cut);
  for (std::size_t kind = 1; kind < kinds.size(); ++kind) {
    const LayerTimes times = time_layer(load, id, kinds[kind].layer, position, cut);
    for (Seconds LayerTimes::* part :
         {&LayerTimes::lane, &LayerTimes::forward, &LayerTimes::backward, &LayerTimes::full_forward,
          &LayerTimes::full_backward})
      least.*part = std::min(least.*part, times.*part);
  }
  return least;
}

LayerTimes StageCosts::time_layer(const ModuleLoad& load, ModuleId id, LayerRange layer,
                                  std::size_t position, const LayerCut& cut) const {
  const Module& module = layers_.module(id);
  const ChunkContext context = layers_.context_at(id, position, cut);
  const ModuleLayout grid = cut.grid();
  std::vector<Rank> members;
  for (int t = 0; t < cut.tp; ++t) members.push_back(grid.rank_at(t, 0, 0, 0));
  const Ring ring = make_ring(members, scenario_.cluster, profile_, Others::alike);
  const bool visited = needs_backward(scenario_.model, id);
  const auto forward = [&](const WorkSize& size) {
    return range_time(module, layer, Phase::forward, size, context, {ring, {}, {}}, profile_);
  };
  const auto backward = [&](const WorkSize& size) {
    if (!visited) return Seconds(0);
    return range_time(module, layer, Phase::backward, size, context, {ring, {}, {}}, profile_);
  };
  LayerTimes times{{},
                   forward(load.smallest),
                   backward(load.smallest),
                   forward(load.smallest_full),
                   backward(load.smallest_full)};
  for (const auto& [size, count] : representatives(load.lane))
    times.lane += (forward(size) + backward(size)) * count;
  return times;
}

void StageCosts::add_times(const LayoutView& view, std::size_t branch, std::size_t stage,
                           StageCost& cost) {
  const std::vector<Stage>& stages = (*view.stages)[branch];
  const Model& model = scenario_.model;
  for (const Chunk& chunk : stages[stage].chunks) {
    const Times& per_layer = times(view, branch, chunk.module);
    const StackLayers::Counts counts =
        layers_.count(chunk, view.layout->modules[chunk.module.value]);
    for (std::size_t position = 0; position < StackLayers::kPositions; ++position) {
      cost.times += per_layer[position] * counts[position];
    }
    const bool visited = needs_backward(model, chunk.module);
    const Seconds over = profile_.op_overhead, over_back = visited ? over : Seconds(0);
    cost.times += {(over + over_back) * (*view.loads)[branch][chunk.module.value].works, over,
                   over_back, over, over_back};
    cost.has_backward = cost.has_backward || visited;
  }
  if (stage + 1 == stages.size()) return;
  const ModuleId producer = stages[stage].chunks.back().module;
  const std::int64_t rows = (*view.loads)[branch][producer.value].smallest.tokens;
  cost.rows_flow = rows > 0;
  const std::int64_t elements = rows * output_width(model.modules[producer.value]);
  const ModuleLayout& grid = view.plan.branches[branch].grid;
  // Under sequence parallelism every rank sends its own rows.
  cost.message = least_message(
      grid, size_of(scenario_.training.precision) * elements / std::int64_t{grid.sp ? grid.tp : 1});
}

void StageCosts::add_parameters(const LayoutView& view, std::size_t branch, std::size_t stage,
                                StageCost& cost) {
  const NumberFormat precision = scenario_.training.precision;
  const ModuleLayout& grid = view.plan.branches[branch].grid;
  const Ring& ring = gradient_ring(grid, index_of(view, branch, stage));
  Bytes updated{};
  bool first = true;  // gradients of the first chunk a backward visits are ready last
  for (const Chunk& chunk : (*view.stages)[branch][stage].chunks) {
    const Shard shard = view.layout->modules[chunk.module.value].shard;
    const std::int64_t local = layers_.parameters_of(chunk, grid.tp).trained;
    const Bytes weights = size_of(precision) * local;
    if (local > 0) {
      const bool sharded = shard != Shard::none && grid.dp() > 1;
      // Hidden behind the backward: as if nothing were left of it.
      const Seconds reduction =
          profile_.stack.overlap > 0
              ? Seconds(0)
              : ring_time(ring,
                          sharded ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                          reduced_bytes(profile_, precision, gradient_size(precision) * local));
      cost.reductions += reduction;
      if (first) cost.reduction = reduction;
      // A fully sharded module gathers beside its ops, not after the update.
      if (sharded && shard != Shard::full && profile_.stack.overlap <= 0)
        cost.update += ring_time(ring, CollectiveKind::all_gather, weights);
      updated += update_bytes(precision) * (sharded ? local / grid.dp() : local);
    }
    first = first && !needs_backward(scenario_.model, chunk.module);
  }
  if (updated.value > 0) {
    cost.update += profile_.optimizer_overhead +
                   updated / (profile_.device.memory_rate * profile_.optimizer_bytes_efficiency);
  }
}

Seconds StageCosts::least_message(const ModuleLayout& grid, Bytes bytes) const {
  const Cluster& cluster = scenario_.cluster;
  const Seconds between =
      cluster.fabric_link.latency + bytes / (cluster.fabric_link.rate * profile_.fabric_efficiency);
  const Seconds inside =
      cluster.node_link.latency + bytes / (cluster.node_link.rate * profile_.message_efficiency);
  Seconds least = std::min(between, inside);
  if (cluster.domain_size() < cluster.ranks_per_node)
    least = std::min(
        least, cluster.bus.latency + bytes / (cluster.bus.rate * profile_.message_efficiency));
  const int apart = grid.tp * grid.cp * grid.dp();  // ranks between a stage and the next
  const bool elsewhere = apart >= std::max(cluster.domain_size(), cluster.ranks_per_node);
  return profile_.message_latency + (elsewhere ? between : least);
}

}  // namespace polyphony
