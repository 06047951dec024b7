#include "shared/plan/plan.h"

#include <algorithm>

#include "shared/layers/expand.h"
#include "shared/plan/links.h"
#include "shared/plan/partition.h"
#include "shared/program/work.h"
#include "shared/scenario/typical_batch.h"

namespace polyphony {
namespace {

// The smallest piece a pipeline stage can take: one block with the layers that cling to it
// (embeddings to the block after them, the final norm, projectors and head to the block before).
struct Unit {
  std::vector<Chunk> chunks;  // one layer each
  double cost = 0;
};

bool is_block(LayerKind kind) {
  switch (kind) {
    case LayerKind::encoder_block:
    case LayerKind::decoder_block:
    case LayerKind::diffusion_block:
      return true;
    case LayerKind::patch_embedding:
    case LayerKind::audio_embedding:
    case LayerKind::token_embedding:
    case LayerKind::latent_embedding:
    case LayerKind::encoder_norm:
    case LayerKind::projector_mlp:
    case LayerKind::projector_linear:
    case LayerKind::language_head:
    case LayerKind::diffusion_head:
      return false;
  }
  return false;
}
bool is_input(LayerKind kind) {
  switch (kind) {
    case LayerKind::patch_embedding:
    case LayerKind::audio_embedding:
    case LayerKind::token_embedding:
    case LayerKind::latent_embedding:
      return true;
    case LayerKind::encoder_block:
    case LayerKind::decoder_block:
    case LayerKind::diffusion_block:
    case LayerKind::encoder_norm:
    case LayerKind::projector_mlp:
    case LayerKind::projector_linear:
    case LayerKind::language_head:
    case LayerKind::diffusion_head:
      return false;
  }
  return false;
}

Chunk one_layer(ModuleId module, int layer) {
  return {module, {static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(layer + 1)}};
}

// Cuts the modules of a branch into units, and joins units into stages.
class Units {
 public:
  Units(const Scenario& scenario, const Layout& layout, const Batch& batch)
      : scenario_(scenario), model_(scenario.model), layout_(layout), batch_(batch) {}

  void add_module(ModuleId id) {
    const std::vector<LayerKind> stack = layers(model_.modules[id.value]);
    bool after_input = false;
    double block_cost = -1;  // all blocks of a module cost the same
    for (int layer = 0; layer < static_cast<int>(stack.size()); ++layer) {
      const LayerKind kind = stack[static_cast<std::size_t>(layer)];
      const bool opens = is_input(kind) || (is_block(kind) && !after_input);
      if (opens || units_.empty()) units_.emplace_back();
      after_input = is_input(kind);
      if (!is_block(kind)) {
        units_.back().cost += cost(id, layer);
      } else {
        if (block_cost < 0) block_cost = cost(id, layer);
        units_.back().cost += block_cost;
      }
      units_.back().chunks.push_back(one_layer(id, layer));
      add_projectors(id, layer);
    }
  }

  const std::vector<Unit>& units() const { return units_; }

  Stage join(std::size_t begin, std::size_t end) const {
    Stage stage;
    for (std::size_t u = begin; u < end; ++u)
      for (const Chunk& chunk : units_[u].chunks) {
        const bool goes_on = !stage.chunks.empty() && stage.chunks.back().module == chunk.module &&
                             stage.chunks.back().layers.end == chunk.layers.begin;
        if (goes_on && !is_cut(chunk.module, chunk.layers.begin, &chunk == &units_[u].chunks[0]))
          stage.chunks.back().layers.end = chunk.layers.end;
        else
          stage.chunks.push_back(chunk);
      }
    return stage;
  }

 private:
  // The projectors that read what `layer` of `source` leaves.
  void add_projectors(ModuleId source, int layer) {
    for (const Edge& edge : model_.edges) {
      if (edge.from != source || edge_end(model_, edge) != layer + 1 ||
          model_.modules[edge.to.value].kind != ModuleKind::projector)
        continue;
      units_.back().cost += cost(edge.to, 0);
      units_.back().chunks.push_back(one_layer(edge.to, 0));
    }
  }

  // Whether a chunk must end before this layer.
  bool is_cut(ModuleId module, int layer, bool unit_begins) const {
    const bool gathers = layout_.modules[module.value].shard == Shard::full;
    if (gathers && unit_begins) return true;
    return std::any_of(model_.edges.begin(), model_.edges.end(), [&](const Edge& edge) {
      return (edge.to == module && edge.to_layer == layer) ||
             (edge.from == module && edge_end(model_, edge) == layer);
    });
  }

  // FLOPs of one layer over a typical batch, all its passes: what balanced stages equalise.
  double cost(ModuleId id, int layer) const {
    const Module& module = model_.modules[id.value];
    std::vector<std::uint32_t> all(batch_.samples.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint32_t>(i);
    const WorkSize size = work_size(model_, id, batch_, all.data(), all.size());
    const LayerRange range = one_layer(id, layer).layers;
    ChunkContext context;
    context.precision = scenario_.training.precision;
    context.weight_grad = module.trainable != Trainable::frozen;
    context.recompute = layout_.modules[id.value].recompute;
    double flops = total_flops(expand(module, range, Phase::forward, size, context)).value;
    if (needs_backward(model_, id))
      flops += total_flops(expand(module, range, Phase::backward, size, context)).value;
    return flops;
  }

  const Scenario& scenario_;
  const Model& model_;
  const Layout& layout_;
  const Batch& batch_;
  std::vector<Unit> units_;
};

// The rank whose turn the stage's first forward is; check_turns() names stages that are nobody's or
// several ranks'.
int rank_of(const std::vector<Turns>& turns, int stage) {
  for (std::size_t rank = 0; rank < turns.size(); ++rank)
    for (const Turn& turn : turns[rank])
      if (is_forward(turn) && turn.stage == stage) return static_cast<int>(rank);
  return 0;
}

Branch make_branch(const Scenario& scenario, const Layout& layout, const Batch& batch,
                   const std::vector<ModuleId>& modules, const ModuleLayout& grid, int microbatches,
                   const Schedule& schedule, const std::vector<Turns>& turns = {}) {
  Units units(scenario, layout, batch);
  for (const ModuleId id : modules) units.add_module(id);
  std::vector<int> sizes = grid.blocks;
  if (sizes.empty()) {
    std::vector<double> costs;
    for (const Unit& unit : units.units()) costs.push_back(unit.cost);
    sizes = partition_chain(costs, grid.pp * grid.vpp);
  }
  Branch branch{grid, {}, microbatches};
  std::size_t next = 0;
  for (const int size : sizes) {
    const std::size_t end = next + static_cast<std::size_t>(size);
    POLYPHONY_CHECK(end <= units.units().size(), end << " blocks asked for");
    branch.stages.push_back(units.join(next, end));
    next = end;
  }
  POLYPHONY_CHECK(next == units.units().size(),
                  next << " of " << units.units().size() << " blocks placed");
  for (int s = 0; s < grid.pp * grid.vpp; ++s)
    branch.rank_of_stage.push_back(turns.empty() ? schedule.place({grid.pp, grid.vpp}, s)
                                                 : rank_of(turns, s));
  return branch;
}

// Work items a step of a branch on `grid`: an encoder that shares the ranks of the language module
// may take several microbatches at once.
int works_of(const Layout& layout, const ModuleLayout& grid, const ModuleLayout& language) {
  const bool shares = grid.first_rank == language.first_rank && grid.ranks == language.ranks;
  if (!shares) return layout.microbatches;
  if (layout.encoder_microbatches > 0) return layout.encoder_microbatches;
  return language.pp == 1 ? layout.microbatches : 1;
}

}  // namespace

int cell_ranks(const ModuleLayout& grid) {
  const int experts = grid.experts_tp() == 1 ? grid.ep : grid.ep * grid.tp;
  return std::max(grid.tp * grid.cp, grid.ep > 1 ? experts : 1);
}

Plan make_plan(const Scenario& scenario, const Layout& layout) {
  const Batch batch = typical_batch(scenario);
  const Model& model = scenario.model;
  std::vector<ModuleId> owners;  // modules that projectors cling to
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].kind != ModuleKind::projector) owners.emplace_back(m);
  const ModuleId language = language_module(model);
  const Schedule &own = schedule(layout.schedule), &others = schedule(own.following);
  const ModuleLayout& grid = layout.modules[language.value];
  Plan plan;
  if (layout.placement == Placement::homogeneous || owners.size() == 1) {
    plan.branches.push_back(make_branch(scenario, layout, batch, owners, layout.modules.back(),
                                        layout.microbatches, own, layout.turns));
    return plan;
  }
  for (const ModuleId id : owners) {
    const ModuleLayout& module_grid = layout.modules[id.value];
    if (id == language) plan.language = plan.branches.size();
    const int works = id < language ? works_of(layout, module_grid, grid) : layout.microbatches;
    plan.branches.push_back(make_branch(scenario, layout, batch, {id}, module_grid, works,
                                        id == language ? own : others,
                                        id == language ? layout.turns : std::vector<Turns>{}));
  }
  return plan;
}

}  // namespace polyphony
