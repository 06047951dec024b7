#include "shared/screen/stage_price.h"

#include <algorithm>
#include <optional>

#include "shared/layers/layer_table.h"
#include "shared/plan/cut_by_blocks.h"
#include "shared/plan/links.h"
#include "shared/work/rows.h"

namespace polyphony {
StagePrices::StagePrices(const StackLayers& layers, const HardwareProfile& profile)
    : layers_(layers),
      scenario_(layers.scenario()),
      profile_(profile),
      rings_(scenario_.cluster, profile),
      parameters_(layers) {}

LayerTimes& LayerTimes::operator+=(const LayerTimes& other) {
  lane += other.lane;
  forward += other.forward;
  backward += other.backward;
  full_forward += other.full_forward;
  full_backward += other.full_backward;
  weights += other.weights;
  return *this;
}

LayerTimes LayerTimes::operator*(int times) const {
  return {lane * times,         forward * times,       backward * times,
          full_forward * times, full_backward * times, weights * times};
}

void StagePrices::start(const LayoutView& view) {
  found_.assign(view.layout->modules.size(), {});
  for (std::size_t m = 0; m < found_.size(); ++m)
    found_[m].again = recomputed_range(view.layout->modules[m]);
}

StagePrice StagePrices::cost(const LayoutView& view, StageOfBranch stage, int index, bool splits,
                             const StagePrice* like) {
  StagePrice cost;
  if (like != nullptr) {
    cost = *like;
  } else {
    cost.times = times(view, stage, splits);
    add_parameters(view, stage, index, cost);
  }
  add_message(view, stage, cost);
  return cost;
}

bool StagePrices::alike(const LayoutView& view, StageOfBranch stage, int index, int next) const {
  const BranchView& branch = view.branches[stage.branch];
  const auto place = [&](int at) {
    return static_cast<int>(branch.grid->rank_at(0, 0, 0, at).value) %
           scenario_.cluster.ranks_per_node;
  };
  if (!scenario_.cluster.flat() || place(index) != place(next)) return false;
  const StageRuns &one = (*branch.stages)[stage.stage], &other = (*branch.stages)[stage.stage + 1u];
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [&](const LayerRun& a, const LayerRun& b) {
                      return !measured(a.module) &&
                             layers_.alike(a, b, found_[a.module.value].again);
                    });
}

Seconds StagePrices::update_time(Bytes updated) const {
  if (updated.value == 0) return Seconds(0);
  return profile_.optimizer_overhead +
         updated / (profile_.device.memory_rate * profile_.optimizer_bytes_efficiency);
}

const StagePrices::Times& StagePrices::layer_times_of(const LayoutView& view, std::size_t branch,
                                                      ModuleId id, bool splits) {
  const ModuleLayout& grid = view.layout->modules[id.value];
  const BranchLoad& load = *view.branches[branch].load;
  const LayerCut cut(grid);
  const int node = scenario_.cluster.ranks_per_node;
  const bool regular = scenario_.cluster.flat() && grid.first_rank % node == 0;
  key_ = {
      load.id, static_cast<int>(id.value), splits ? 1 : 0, regular ? 0 : grid.first_rank,
      regular && node % (cut.tp * cut.cp) == 0 && node % (cut.tp * cut.ep) == 0 ? 0 : grid.ranks};
  cut.add_to(key_);
  Key key = key_;
  return times_.get(key, [&] {
    const Module& module = layers_.module(id);
    const ExpertChoice experts = profile_.stack.one_copy
                                     ? ExpertChoice{module.experts_per_token, module.experts}
                                     : ExpertChoice{};
    const InnerRings rings{rings_.least(grid, grid.tp, 1, {}),
                           rings_.least(grid, grid.cp, grid.tp, {}),
                           rings_.least(grid, grid.ep, grid.experts_tp(), experts)};
    const auto time = [&](std::size_t position, LayerRange layer) {
      const bool skipped = StackLayers::recomputed(position) && cut.recompute == Recompute::none;
      return skipped ? LayerTimes{} : time_layer(load, id, layer, position, cut, rings, splits);
    };
    const int size = layers_.size(id);
    if (measured(id)) {
      Times result;
      for (int layer = 0; layer < size; ++layer)
        for (const bool again : {false, true}) {
          const LayerRange one{static_cast<std::uint16_t>(layer),
                               static_cast<std::uint16_t>(layer + 1)};
          result.push_back(time(layers_.position_of(id, layer, again ? one : LayerRange{}), one));
        }
      return result;
    }
    Times result(layers_.positions(id));
    for (std::size_t p = 0; p < result.size(); ++p)
      if (p != StackLayers::kLast || size > 1) result[p] = time(p, layers_.at(id, p));
    return result;
  });
}

LayerTimes StagePrices::time_layer(const BranchLoad& branch, ModuleId id, LayerRange layer,
                                   std::size_t position, const LayerCut& cut,
                                   const InnerRings& rings, bool splits) const {
  const ModuleLoad& load = branch.modules[id.value];
  const Module& module = layers_.module(id);
  const ChunkContext context = layers_.context_at(id, position, cut);
  const bool visited = needs_backward(scenario_.model, id);
  // The first layer of a chunk reads the conditioning of all its blocks; no block counts as the
  // first.
  const bool second = reads_conditioning(module, layer);
  const auto time = [&](Phase phase, const WorkSize& size) {
    if (!second) return range_time(module, layer, phase, size, context, rings, profile_);
    const LayerRange both{static_cast<std::uint16_t>(layer.begin - 1), layer.end};
    return layer_times(module, both, phase, size, context, rings, profile_).back();
  };
  const auto forward = [&](const WorkSize& size) { return time(Phase::forward, size); };
  const auto backward = [&](const WorkSize& size) {
    return visited ? time(Phase::backward, size) : Seconds(0);
  };
  const auto back = [&](const WorkSize& size) {
    return visited && splits ? std::min(time(Phase::backward_input, size), backward(size))
                             : backward(size);
  };
  LayerTimes times;
  times.forward = forward(load.smallest);
  times.backward = back(load.smallest);
  times.full_forward = forward(load.smallest_full);
  times.full_backward = back(load.smallest_full);
  for (std::size_t kind = 0; kind < load.sizes.size(); ++kind) {
    const WorkSize& size = load.sizes[kind];
    const int count = branch.counts[kind];
    Seconds whole = backward(size);
    if (visited && splits) {
      const Seconds input = time(Phase::backward_input, size), returned = std::min(input, whole);
      // Two parts may take less than one pass: what hides behind GEMMs differs.
      whole = std::min(whole, input + time(Phase::backward_weight, size));
      times.weights += (whole - returned) * count;
    }
    times.lane += (forward(size) + whole) * count;
  }
  return times;
}

LayerTimes StagePrices::times(const LayoutView& view, StageOfBranch stage, bool splits) {
  LayerTimes sum;
  const BranchView& branch = view.branches[stage.branch];
  for (const LayerRun& run : (*branch.stages)[stage.stage]) {
    const ModuleLayout& layout = view.layout->modules[run.module.value];
    Found& found = found_[run.module.value];
    if (found.times == nullptr)
      found.times = &layer_times_of(view, stage.branch, run.module, splits);
    const Times& times = *found.times;
    if (measured(run.module)) {
      for (int layer = run.layers.begin; layer < run.layers.end; ++layer) {
        const bool again = layer >= found.again.begin && layer < found.again.end;
        sum += times[2 * static_cast<std::size_t>(layer) + (again ? 1 : 0)];
      }
    } else {
      const StackLayers::Counts counts = layers_.count(run, found.again);
      for (std::size_t p = 0; p < times.size(); ++p)
        if (counts[p] > 0) sum += times[p] * counts[p];
    }
    int chunks = 0;
    layers_.each_chunk(run, cut_by_blocks(layout.shard), [&](LayerRange) { ++chunks; });
    const bool visited = needs_backward(scenario_.model, run.module);
    const Seconds over = profile_.op_overhead * chunks, over_back = visited ? over : Seconds(0);
    sum += {(over + over_back) * branch.works, over, over_back, over, over_back, {}};
  }
  return sum;
}

bool StagePrices::follows(const LayerRun& before, const LayerRun& after) const {
  if (after.layers.begin > 0)
    return before.module == after.module && before.layers.end == after.layers.begin;
  const Model& model = scenario_.model;
  return std::any_of(model.edges.begin(), model.edges.end(), [&](const Edge& edge) {
    return edge.from == before.module && edge.to == after.module && edge.to_layer == 0 &&
           edge_end(model, edge) == before.layers.end;
  });
}

void StagePrices::add_message(const LayoutView& view, StageOfBranch stage, StagePrice& cost) const {
  const BranchView& branch = view.branches[stage.branch];
  const std::vector<StageRuns>& stages = *branch.stages;
  cost.flows = cost.returns = false;
  cost.message = Seconds(0);
  const std::size_t next = stage.stage + std::size_t{1};
  if (next == stages.size() || !follows(stages[stage.stage].back(), stages[next].front())) return;
  const LayerRun& last = stages[stage.stage].back();
  const Module& producer = layers_.module(last.module);
  const std::int64_t rows =
      rows_leaving(producer, last.layers.end, branch.load->modules[last.module.value].smallest);
  // The rows are those of the consumer: an edge brings what the producer made of the consumer's
  // items.
  const std::int64_t taken =
      branch.load->modules[stages[next].front().module.value].smallest.tokens;
  cost.flows = rows > 0 && taken > 0;
  cost.returns = cost.flows && needs_backward(scenario_.model, last.module);
  const Pipeline shape{branch.grid->pp, branch.grid->vpp};
  const auto place = schedule(view.layout->schedule).place;
  if (!view.layout->actions.empty() || branch.grid->pp == 1 ||
      (branch.grid->vpp > 1 && place(shape, stage.stage) == place(shape, static_cast<int>(next))))
    return;  // perhaps on one rank
  const bool whole = last.module == stages[next].front().module;
  const std::int64_t elements = (whole ? rows : 0) * output_width(producer);
  const ModuleLayout& grid = view.layout->modules[last.module.value];
  // Under sequence parallelism, and where receivers gather, every rank sends a part of the rows.
  const bool parts = grid.sp || profile_.stack.scattered_messages;
  cost.message =
      rings_.least_message(*branch.grid, size_of(scenario_.training.precision) * elements /
                                             std::int64_t{parts ? grid.tp : 1});
}

StagePrices::ChunkCost StagePrices::chunk_cost(const LayoutView& view, StageOfBranch stage,
                                               const ModuleLayout& layout,
                                               const ChunkElements& sums, int first) {
  const NumberFormat precision = scenario_.training.precision;
  const BranchView& branch = view.branches[stage.branch];
  const auto time = [&](int count, int stride, CollectiveKind kind, Bytes bytes) {
    return rings_.least_time(first, count, stride, kind, bytes);
  };
  const auto reduced = [&](std::int64_t count) {
    return reduced_bytes(profile_, precision, gradient_size(precision) * count);
  };
  ChunkCost cost;
  for (const bool experts : {false, true}) {
    const HeldElements& sum = experts ? sums.experts : sums.dense;
    if (sum.trained + sum.frozen == 0) continue;
    const StateDivision of = division_of(*branch.grid, layout.shard, experts);
    const bool divided = of.shards > 1;
    const bool at_once = divided && layout.shard >= Shard::gradients;
    // A tenth remains exposed where the rest is hidden (shared/cost/cost_model.cpp).
    const double shown = layout.shard < Shard::gradients && profile_.stack.overlap > 0 ? 0.1 : 1;
    const std::int64_t owned = sum.trained / of.shards;
    if (sum.trained > 0) {
      const Seconds summed =
          time(of.shards, of.stride, CollectiveKind::reduce_scatter, reduced(sum.trained));
      if (!at_once) cost.reduction += shown * summed;
      if (at_once) cost.scatter += branch.works * summed;
      cost.reduction += shown * time(of.replicas, of.stride * of.shards, CollectiveKind::all_reduce,
                                     reduced(owned));
      if (divided && layout.shard != Shard::full)
        cost.gathers += shown * time(of.shards, of.stride, CollectiveKind::all_gather,
                                     size_of(precision) * sum.trained);
      cost.updated += update_bytes(precision) * owned;
    }
    if (divided && layout.shard == Shard::full)
      cost.overlapped += time(of.shards, of.stride, CollectiveKind::all_gather,
                              size_of(precision) * (sum.trained + sum.frozen));
  }
  return cost;
}

void StagePrices::add_parameters(const LayoutView& view, StageOfBranch stage, int index,
                                 StagePrice& cost) {
  const BranchView& branch = view.branches[stage.branch];
  const int first = static_cast<int>(branch.grid->rank_at(0, 0, 0, index).value);
  bool ready_last = true;  // the first chunk's gradients, which a backward visits last
  Seconds gather{}, scatter{}, most{};
  for (const LayerRun& run : (*branch.stages)[stage.stage]) {
    const ModuleLayout& layout = view.layout->modules[run.module.value];
    Found& found = found_[run.module.value];
    if (found.elements == nullptr) found.elements = &parameters_.of(run.module, layout);
    const bool visited = needs_backward(scenario_.model, run.module);
    std::optional<StackLayers::Counts> before;  // of the chunk before, mostly the same
    ChunkCost of;
    layers_.each_chunk(run, cut_by_blocks(layout.shard), [&](LayerRange range) {
      const StackLayers::Counts counts = layers_.count({run.module, range}, {});
      if (before != counts) of = chunk_cost(view, stage, layout, found.elements->of(counts), first);
      before = counts;
      cost.reductions += of.reduction;
      if (ready_last) cost.reduction = of.reduction;
      ready_last = ready_last && !visited;
      cost.gathers += of.gathers;
      cost.updated += of.updated;
      scatter += of.scatter;
      gather += (visited ? 2 : 1) * branch.works * of.overlapped;
      most = std::max(most, (visited ? 2 : 1) * branch.works * of.overlapped);
    });
  }
  // Of two consecutive actions of the stage, the second finds one chunk already gathered.
  cost.streamed = scatter + gather - most;
}

}  // namespace polyphony
