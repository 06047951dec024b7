#include "shared/plan/plan.h"

#include <algorithm>

#include "shared/expand.h"
#include "shared/plan/assign.h"
#include "shared/plan/partition.h"

namespace polyphony {
namespace {

// The smallest piece a pipeline stage can take: one block with the layers that cling to it
// (embeddings to the block after them, the final norm, projector and head to the block before).
struct Unit {
  std::vector<Chunk> chunks;
  double cost = 0;
};

void append(std::vector<Chunk>& chunks, ModuleId module, int layer) {
  const auto begin = static_cast<std::uint16_t>(layer), end = static_cast<std::uint16_t>(layer + 1);
  if (!chunks.empty() && chunks.back().module == module && chunks.back().layers.end == begin)
    chunks.back().layers.end = end;
  else
    chunks.push_back({module, {begin, end}});
}

bool opens_unit(LayerKind kind, bool after_opener) {
  switch (kind) {
    case LayerKind::patch_embedding:
    case LayerKind::token_embedding:
      return true;
    case LayerKind::encoder_block:
    case LayerKind::decoder_block:
      return !after_opener;
    case LayerKind::encoder_norm:
    case LayerKind::projector_mlp:
    case LayerKind::language_head:
      return false;
  }
  return false;
}

// FLOPs of one layer over an average sample, all its passes: what balanced stages equalise.
double layer_cost(const Scenario& scenario, const Batch& batch, ModuleId id, int layer,
                  Recompute recompute) {
  const Module& module = scenario.model.modules[id.value];
  std::vector<std::uint32_t> all(batch.samples.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint32_t>(i);
  const WorkSize size = work_size(scenario.model, id, batch, all.data(), all.size());
  const LayerRange range{static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(layer + 1)};
  ChunkContext context;
  context.precision = scenario.training.precision;
  context.weight_grad = module.trainable != Trainable::frozen;
  double cost = total_flops(expand(module, range, Phase::forward, size, context)).value;
  if (needs_backward(scenario.model, id)) {
    cost += total_flops(expand(module, range, Phase::backward, size, context)).value;
    if (recompute == Recompute::full)
      cost += total_flops(expand(module, range, Phase::recompute, size, context)).value;
  }
  return cost;
}

std::vector<Unit> make_units(const Scenario& scenario, const Layout& layout, const Batch& batch,
                             const std::vector<ModuleId>& modules) {
  std::vector<Unit> units;
  for (const ModuleId id : modules) {
    const std::vector<LayerKind> stack = layers(scenario.model.modules[id.value]);
    bool after_opener = false;
    double block_cost = -1;  // all blocks of a module cost the same
    for (std::size_t layer = 0; layer < stack.size(); ++layer) {
      const bool block =
          stack[layer] == LayerKind::encoder_block || stack[layer] == LayerKind::decoder_block;
      const bool opens = opens_unit(stack[layer], after_opener);
      if (opens) units.emplace_back();
      after_opener = opens && !block;
      double cost = block && block_cost >= 0
                        ? block_cost
                        : layer_cost(scenario, batch, id, static_cast<int>(layer),
                                     layout.modules[id.value].recompute);
      if (block) block_cost = cost;
      append(units.back().chunks, id, static_cast<int>(layer));
      units.back().cost += cost;
    }
  }
  return units;
}

Branch make_branch(const Scenario& scenario, const Layout& layout, const Batch& batch,
                   const std::vector<ModuleId>& modules, const ModuleLayout& grid,
                   int microbatches) {
  const std::vector<Unit> units = make_units(scenario, layout, batch, modules);
  std::vector<int> sizes = grid.blocks;
  if (sizes.empty()) {
    std::vector<double> costs;
    for (const Unit& unit : units) costs.push_back(unit.cost);
    sizes = partition_chain(costs, grid.pp);
  }
  Branch branch{grid, {}, microbatches};
  std::size_t next = 0;
  for (const int size : sizes) {
    Stage stage;
    for (int i = 0; i < size; ++i, ++next)
      for (const Chunk& chunk : units[next].chunks)
        for (int layer = chunk.layers.begin; layer < chunk.layers.end; ++layer)
          append(stage.chunks, chunk.module, layer);
    branch.stages.push_back(std::move(stage));
  }
  POLYPHONY_CHECK(next == units.size(), next << " of " << units.size() << " blocks placed");
  return branch;
}

}  // namespace

Plan make_plan(const Scenario& scenario, const Layout& layout) {
  const Batch batch = typical_batch(scenario);
  std::vector<ModuleId> all;
  for (std::size_t m = 0; m < scenario.model.modules.size(); ++m) all.emplace_back(m);
  const ModuleLayout& language = layout.modules.back();
  Plan plan;
  if (layout.placement == Placement::homogeneous || all.size() == 1) {
    plan.branches.push_back(
        make_branch(scenario, layout, batch, all, language, layout.microbatches));
    return plan;
  }
  int encoder_works = layout.microbatches;
  if (layout.placement == Placement::colocated) {
    encoder_works = layout.encoder_microbatches;
    if (encoder_works == 0) encoder_works = language.pp == 1 ? layout.microbatches : 1;
  }
  const std::vector<ModuleId> encoder(all.begin(), all.end() - 1);
  plan.branches.push_back(
      make_branch(scenario, layout, batch, encoder, layout.modules.front(), encoder_works));
  plan.branches.push_back(
      make_branch(scenario, layout, batch, {all.back()}, language, layout.microbatches));
  return plan;
}

}  // namespace polyphony
