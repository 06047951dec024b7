#include "shared/cost/layer_costs.h"

#include <numeric>

#include "shared/cost/compute_time.h"
#include "shared/program/work.h"
#include "shared/work/rows.h"

namespace polyphony {
namespace {

// Returns the size of one of `lanes` equal shares of the batch, on one of its `contexts` ranks.
// Counts are rounded up.
WorkSize mean_work(const WorkSize& batch, int lanes, int contexts) {
  const auto of_lane = [&](std::int64_t count) { return (count + lanes - 1) / lanes; };
  const auto of_rank = [&](std::int64_t count) {
    return (of_lane(count) + contexts - 1) / contexts;
  };
  const auto narrow = [](std::int64_t count) { return static_cast<std::int32_t>(count); };
  return {.tokens = of_rank(batch.tokens),
          .pairs = of_rank(batch.pairs),
          .text_tokens = of_rank(batch.text_tokens),
          .loss_tokens = of_rank(batch.loss_tokens),
          .sequences = narrow(of_rank(batch.sequences)),
          .samples = narrow(of_lane(batch.samples)),
          .gathered = of_lane(batch.gathered),
          .condition = of_rank(batch.condition),
          .cross_pairs = of_rank(batch.cross_pairs),
          .window_pairs = of_rank(batch.window_pairs),
          .gathered_pairs = of_lane(batch.gathered_pairs),
          .gathered_window_pairs = of_lane(batch.gathered_window_pairs)};
}

// Returns the ring of `count` ranks of the grid's first stage, at a distance of `stride`.
Ring ring_of(const ModuleLayout& grid, int count, int stride, const Cluster& cluster,
             const HardwareProfile& profile, const ExpertChoice& choices = {}) {
  std::vector<Rank> members;
  for (int i = 0; i < count; ++i)
    members.emplace_back(static_cast<std::size_t>(grid.first_rank + i * stride));
  return make_ring(members, cluster, profile, Others::alike, choices);
}

InnerRings rings_of(const Module& module, const ModuleLayout& grid, const Cluster& cluster,
                    const HardwareProfile& profile) {
  const ExpertChoice experts = profile.stack.one_copy
                                   ? ExpertChoice{module.experts_per_token, module.experts}
                                   : ExpertChoice{};
  return {ring_of(grid, grid.tp, 1, cluster, profile),
          ring_of(grid, grid.cp, grid.tp, cluster, profile),
          ring_of(grid, grid.ep, grid.experts_tp(), cluster, profile, experts)};
}

}  // namespace

std::vector<WorkSize> module_sizes(const Model& model, const Batch& batch) {
  std::vector<std::uint32_t> all(batch.samples.size());
  std::iota(all.begin(), all.end(), std::uint32_t{0});
  std::vector<WorkSize> sizes;
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    sizes.push_back(work_size(model, ModuleId(m), batch, all.data(), all.size()));
  return sizes;
}

std::vector<LayerCost> layer_costs(const Scenario& scenario, ModuleId id, const ModuleLayout& grid,
                                   int microbatches, const WorkSize& size, const Cluster& cluster,
                                   const HardwareProfile& profile) {
  const Model& model = scenario.model;
  const Module& module = model.modules[id.value];
  const bool copied = grid.copies_items() && module.kind != ModuleKind::language;
  const WorkSize work = mean_work(size, microbatches * grid.dp(), copied ? 1 : grid.cp);
  const LayerRange stack{0, static_cast<std::uint16_t>(layers(module).size())};
  const ChunkContext context = chunk_context(model, id, 0, grid, scenario.training.precision);
  const InnerRings rings = rings_of(module, grid, cluster, profile);
  const auto times = [&](Phase phase) {
    return layer_times(module, stack, phase, work, context, rings, profile);
  };
  const std::vector<Seconds> forward = times(Phase::forward);
  const std::vector<Seconds> backward =
      needs_backward(model, id) ? times(Phase::backward) : std::vector<Seconds>(forward.size());
  // With sequence parallelism, and if receivers gather the rows, each tensor-parallel rank sends a
  // part.
  const int parts = grid.sp || profile.stack.scattered_messages ? grid.tp : 1;
  std::vector<LayerCost> costs;
  for (std::size_t layer = 0; layer < forward.size(); ++layer) {
    const std::int64_t rows = rows_leaving(module, static_cast<int>(layer) + 1, work);
    costs.push_back({forward[layer], backward[layer],
                     size_of(scenario.training.precision) * (rows * output_width(module) / parts)});
  }
  return costs;
}

LayerCosts layer_costs(const Scenario& scenario, const Layout& layout,
                       const std::vector<WorkSize>& sizes, const HardwareProfile& profile) {
  const Cluster healthy = scenario.cluster.healthy();
  LayerCosts costs;
  for (std::size_t m = 0; m < scenario.model.modules.size(); ++m)
    costs.push_back(layer_costs(scenario, ModuleId(m), layout.modules[m], layout.microbatches,
                                sizes[m], healthy, profile));
  return costs;
}

}  // namespace polyphony
