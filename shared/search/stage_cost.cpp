#include "shared/search/stage_cost.h"

#include <algorithm>
#include <utility>

#include "shared/cost/layer_costs.h"
#include "shared/layers/held_sizes.h"
#include "shared/layers/rows.h"
#include "shared/layers/sizes.h"
#include "shared/plan/step_plan.h"
#include "shared/scenario/typical_batch.h"
#include "shared/search/balanced_plan.h"

namespace polyphony {

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

namespace {

// A bound holds for the machine as it should be, and so for any degraded one.
Scenario healthy(Scenario scenario) {
  scenario.cluster.degraded.clear();
  return scenario;
}

}  // namespace

StageCosts::StageCosts(const Scenario& scenario, const HardwareProfile& profile, const Batch& batch)
    : scenario_(healthy(scenario)), profile_(profile), lane_loads_(scenario_.model, batch) {
  for (const Module& module : scenario_.model.modules)
    stack_.push_back(static_cast<int>(layers(module).size()));
  typical_ = module_sizes(scenario_.model, typical_batch(scenario_));
  coupled_ = std::all_of(batch.samples.begin(), batch.samples.end(),
                         [](const Sample& sample) { return image_patches(sample) > 0; });
}

LayoutView StageCosts::look(const Layout& layout) {
  const std::size_t modules = scenario_.model.modules.size();
  const ModuleLayout &encoder = layout.modules.front(), &language = layout.modules.back();
  const bool one = layout.placement == Placement::homogeneous || modules == 1;
  int encoder_works = layout.microbatches;  // as make_plan() has it
  if (layout.placement == Placement::colocated) {
    encoder_works = layout.encoder_microbatches;
    if (encoder_works == 0) encoder_works = language.pp == 1 ? layout.microbatches : 1;
  }
  LayoutView view;
  view.layout = &layout;
  if (!one) view.plan.branches.push_back({encoder, {}, encoder_works});
  view.plan.branches.push_back({language, {}, layout.microbatches});
  view.plan.language = view.plan.branches.size() - 1;
  view.key = {layout.placement, layout.microbatches, one ? 0 : encoder_works, language.dp(),
              one ? 0 : encoder.dp()};
  const auto [load, new_load] = loads_.try_emplace(view.key);
  if (new_load) load->second = lane_loads_.sum(view.plan);
  view.loads = &load->second;
  const auto [plan, new_plan] = stages_.try_emplace(
      {layout.placement, layout.microbatches, key_of(language), key_of(encoder)});
  if (new_plan) {
    for (const Branch& branch : balanced_plan(scenario_, layout, profile_, typical_).branches)
      plan->second.push_back(branch.stages);
  }
  view.stages = &plan->second;
  return view;
}

StageCosts::GridKey StageCosts::key_of(const ModuleLayout& grid) {
  return {grid.tp,    grid.cp,    grid.pp,        grid.vpp,
          grid.ep,    grid.ranks, grid.expert_tp, grid.first_rank,
          grid.sp,    grid.shard, grid.recompute, grid.recompute_blocks,
          grid.blocks};
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

std::string StageCosts::stage_name(const LayoutView& view, std::size_t branch,
                                   std::size_t stage) const {
  const Chunk& last = (*view.stages)[branch][stage].chunks.back();
  return scenario_.model.modules[last.module.value].name + " stage " + std::to_string(stage);
}

int StageCosts::index_of(const LayoutView& view, std::size_t branch, std::size_t stage) const {
  if (branch != view.plan.language) return static_cast<int>(stage);
  const ModuleLayout& grid = view.plan.branches[branch].grid;
  return schedule(view.layout->schedule).place({grid.pp, grid.vpp}, static_cast<int>(stage));
}

StageCosts::Counts StageCosts::count_layers(const Chunk& chunk, const ModuleLayout& layout) const {
  const int stack = stack_[chunk.module.value];
  const int first = chunk.layers.begin == 0 ? 1 : 0;
  const int last = chunk.layers.end == stack && stack > 1 ? 1 : 0;
  const int begin = chunk.layers.begin + first, end = chunk.layers.end - last;  // of its blocks
  int again = 0;
  if (layout.recompute != Recompute::none) {
    const LayerRange range = recomputed_layers(layout);
    again = std::max(0, std::min<int>(end, range.end) - std::max<int>(begin, range.begin));
  }
  return {first, end - begin - again, again, last};
}

ChunkContext StageCosts::context_at(ModuleId module, std::size_t position,
                                    const ModuleLayout& layout) const {
  ChunkContext context =
      chunk_context(scenario_.model, module, layers_at(module, position).front().layer.begin,
                    layout, scenario_.training.precision);
  context.recomputed = kAllLayers;
  if (position != kRecomputed) context.recompute = Recompute::none;
  context.added_edges = 0;  // of inner layers: not counted
  // LoRA blocks as cheap as the first, which stops where nothing before it trains.
  const Module& module_of = scenario_.model.modules[module.value];
  if (module_of.trainable == Trainable::lora)
    context.input_grad = needs_input_grad(scenario_.model, module);
  return context;
}

std::vector<StageCosts::Alike> StageCosts::layers_at(ModuleId module, std::size_t position) const {
  const auto alone = [](int layer) {
    return LayerRange{static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(layer + 1)};
  };
  const int last = stack_[module.value] - 1;
  const Module& of = scenario_.model.modules[module.value];
  if (position == kFirst || of.layers == 0) return {{alone(0)}};
  if (position == kLast) return {{alone(last)}};
  std::map<BlockKind, Alike> kinds;
  for (int block = 0; block < of.layers; ++block) {
    const auto [known, added] = kinds.try_emplace(block_at(of, block), Alike{alone(1 + block)});
    if (!added) ++known->second.count;
  }
  std::vector<Alike> layers;
  for (const auto& [kind, alike] : kinds) layers.push_back(alike);
  return layers;
}

const StageCosts::Times& StageCosts::times(const LayoutView& view, std::size_t branch,
                                           ModuleId id) {
  const ModuleLayout& layout = view.layout->modules[id.value];
  const auto [known, added] = times_.try_emplace({key(view, branch, id), layout.recompute});
  if (added) {
    for (std::size_t position = 0; position < kPositions; ++position) {
      if (position == kRecomputed && layout.recompute == Recompute::none) continue;
      known->second[position] =
          time_position((*view.loads)[branch][id.value], id, position, layout);
    }
  }
  return known->second;
}

const StageCosts::Tapes& StageCosts::tapes(const LayoutView& view, std::size_t branch,
                                           ModuleId id) {
  const ModuleLayout& layout = view.layout->modules[id.value];
  const auto [known, added] = tapes_.try_emplace({key(view, branch, id), layout.recompute});
  Tapes& tapes = known->second;
  if (!added) return tapes;
  const ModuleLoad& load = (*view.loads)[branch][id.value];
  const Module& module = scenario_.model.modules[id.value];
  for (std::size_t position = 0; position < kPositions; ++position) {
    const ChunkContext context = context_at(id, position, layout);
    const std::vector<Alike> kinds = layers_at(id, position);
    const auto mean = [&](auto bytes_of) {
      Bytes bytes{};
      std::int64_t count = 0;
      for (const Alike& alike : kinds) {
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
    if (position == kRecomputed)
      tapes.rebuilt = mean(
          [&](LayerRange layer) { return workspace_bytes(module, layer, load.largest, context); });
  }
  return tapes;
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
                                     const ModuleLayout& layout) const {
  const std::vector<Alike> kinds = layers_at(id, position);
  LayerTimes least = time_layer(load, id, kinds.front().layer, position, layout);
  for (std::size_t kind = 1; kind < kinds.size(); ++kind) {
    const LayerTimes times = time_layer(load, id, kinds[kind].layer, position, layout);
    for (Seconds LayerTimes::* part :
         {&LayerTimes::lane, &LayerTimes::forward, &LayerTimes::backward, &LayerTimes::full_forward,
          &LayerTimes::full_backward})
      least.*part = std::min(least.*part, times.*part);
  }
  return least;
}

LayerTimes StageCosts::time_layer(const ModuleLoad& load, ModuleId id, LayerRange layer,
                                  std::size_t position, const ModuleLayout& layout) const {
  const Module& module = scenario_.model.modules[id.value];
  const ChunkContext context = context_at(id, position, layout);
  std::vector<Rank> members;
  for (int t = 0; t < layout.tp; ++t) members.push_back(layout.rank_at(t, 0, 0, 0));
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
    const Counts counts = count_layers(chunk, view.layout->modules[chunk.module.value]);
    for (std::size_t position = 0; position < kPositions; ++position) {
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
  cost.message = least_message(view.plan.branches[branch].grid,
                               size_of(scenario_.training.precision) * elements);
}

HeldElements StageCosts::local_parameters_of(const Chunk& chunk, int tp) {
  const auto [known, added] = parameters_.try_emplace({chunk.module.value, tp});
  if (added) {
    const Module& module = scenario_.model.modules[chunk.module.value];
    for (std::size_t position = 0; position < kPositions; ++position) {
      HeldElements sum;
      std::int64_t count = 0;
      for (const Alike& alike : layers_at(chunk.module, position)) {
        const HeldElements held = held_elements(parameters(module, alike.layer), {.tensor = tp});
        sum.trained += held.trained * alike.count;
        sum.frozen += held.frozen * alike.count;
        count += alike.count;
      }
      known->second[position] = {sum.trained / count, sum.frozen / count};
    }
  }
  const Counts counts = count_layers(chunk, {});
  HeldElements total;
  for (std::size_t position = 0; position < kPositions; ++position) {
    total.trained += known->second[position].trained * counts[position];
    total.frozen += known->second[position].frozen * counts[position];
  }
  return total;
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
    const std::int64_t local = local_parameters_of(chunk, grid.tp).trained;
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
      if (sharded && profile_.stack.overlap <= 0)
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

const std::vector<StagesInFlight>& StageCosts::in_flight(const LayoutView& view,
                                                         std::size_t branch) {
  const Branch &language = view.plan.branches.back(), &first = view.plan.branches.front();
  const auto key =
      std::tuple(view.layout->schedule, view.layout->placement, branch, language.grid.pp,
                 language.grid.vpp, language.microbatches, first.grid.pp, first.microbatches);
  if (!view.layout->turns.empty()) in_flight_.erase(key);  // no schedule's
  const auto [known, added] = in_flight_.try_emplace(key);
  if (added) {
    const ModuleLayout& grid = view.plan.branches[branch].grid;
    for (int p = 0; p < grid.pp; ++p)
      known->second.push_back(polyphony::in_flight(
          turns_of(*view.layout, view.plan, static_cast<int>(grid.rank_at(0, 0, 0, p).value)),
          static_cast<int>(branch)));
  }
  return known->second;
}

Bytes StageMemory::held(const InFlight& works_in_flight) const {
  Bytes bytes = (weights * std::int64_t{works_in_flight.weights} -
                 kept * std::int64_t{works_in_flight.both}) /
                std::int64_t{works};
  if (works_in_flight.tapes > 0)
    bytes += largest + lane * std::int64_t{works_in_flight.tapes - 1} / std::int64_t{works};
  return bytes;
}

StageMemory StageCosts::memory(const LayoutView& view, std::size_t branch, std::size_t stage) {
  const NumberFormat precision = scenario_.training.precision;
  const ModuleLayout& grid = view.plan.branches[branch].grid;
  StageMemory memory;
  // widest: a boundary of the largest work item; whole: what a sharded chunk gathers to run.
  Bytes widest{}, rebuilt{}, whole{};
  for (const Chunk& chunk : (*view.stages)[branch][stage].chunks) {
    const ModuleLoad& load = (*view.loads)[branch][chunk.module.value];
    const Module& module = scenario_.model.modules[chunk.module.value];
    const ModuleLayout& layout = view.layout->modules[chunk.module.value];
    const HeldElements local = local_parameters_of(chunk, grid.tp);
    const HeldBytes held = held_bytes(local, layout.shard, grid.dp(), 0, precision);
    memory.fixed += held.values + held.gradient + held.optimizer;
    whole = std::max(whole, held.gathered + held.whole_gradient);
    widest = std::max(widest, size_of(precision) * (load.largest.tokens * output_width(module)));
    if (!needs_backward(scenario_.model, chunk.module)) continue;
    const Tapes& per_layer = tapes(view, branch, chunk.module);
    const Counts counts = count_layers(chunk, layout);
    memory.works = std::max(1, load.works);
    for (std::size_t position = 0; position < kPositions; ++position) {
      memory.largest += per_layer.largest[position] * counts[position];
      memory.lane += per_layer.lane[position] * counts[position];
      memory.weights += per_layer.weights[position] * counts[position];
      memory.kept += per_layer.kept[position] * counts[position];
    }
    if (counts[kRecomputed] > 0) rebuilt = std::max(rebuilt, per_layer.rebuilt);
  }
  // Input and output of the chunk that runs, and received ahead: kReceiveSlots.
  memory.transient = rebuilt + whole + widest * std::int64_t{2 + kReceiveSlots};
  return memory;
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
