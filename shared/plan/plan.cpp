#include "shared/plan/plan.h"

#include <algorithm>

#include "shared/layers/expand_layer.h"
#include "shared/layers/layer_table.h"
#include "shared/plan/cut_by_blocks.h"
#include "shared/plan/links.h"
#include "shared/plan/partition.h"
#include "shared/plan/stages.h"
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

bool is_input(LayerKind kind) { return layer_row(kind).place == LayerPlace::input; }

Chunk one_layer(ModuleId module, int layer) {
  return {module, {static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(layer + 1)}};
}

// Cuts the modules of a branch into units, and joins units into stages. Without costs they are free.
class Units {
 public:
  Units(const Model& model, const Layout& layout, const LayerCosts& costs)
      : model_(model), layout_(layout), costs_(costs) {}

  void add_module(ModuleId id) {
    const std::vector<LayerKind> stack = layers(model_.modules[id.value]);
    bool after_input = false;
    for (int layer = 0; layer < static_cast<int>(stack.size()); ++layer) {
      const LayerKind kind = stack[static_cast<std::size_t>(layer)];
      const bool opens = is_input(kind) || (is_block(kind) && !after_input);
      if (opens || units_.empty()) units_.emplace_back();
      after_input = is_input(kind);
      add_layer(id, layer);
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
  void add_layer(ModuleId id, int layer) {
    if (!costs_.empty())
      units_.back().cost += costs_.at(id.value).at(static_cast<std::size_t>(layer)).count();
    units_.back().chunks.push_back(one_layer(id, layer));
  }

  // The projectors that read what `layer` of `source` leaves.
  void add_projectors(ModuleId source, int layer) {
    for (const Edge& edge : model_.edges) {
      if (edge.from != source || edge_end(model_, edge) != layer + 1 ||
          model_.modules[edge.to.value].kind != ModuleKind::projector)
        continue;
      add_layer(edge.to, 0);
    }
  }

  // Whether a chunk must end before this layer.
  bool is_cut(ModuleId module, int layer, bool unit_begins) const {
    if (unit_begins && cut_by_blocks(layout_.modules[module.value].shard)) return true;
    return std::any_of(model_.edges.begin(), model_.edges.end(), [&](const Edge& edge) {
      return (edge.to == module && edge.to_layer == layer) ||
             (edge.from == module && edge_end(model_, edge) == layer);
    });
  }

  const Model& model_;
  const Layout& layout_;
  const LayerCosts& costs_;
  std::vector<Unit> units_;
};

// FLOPs of each layer over a typical batch, forward and backward, at one a second.
LayerCosts count_flops(const Scenario& scenario, const Layout& layout) {
  const Model& model = scenario.model;
  const Batch batch = typical_batch(scenario);
  std::vector<std::uint32_t> all(batch.samples.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint32_t>(i);
  LayerCosts costs;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const Module& module = model.modules[m];
    const WorkSize size = work_size(model, ModuleId(m), batch, all.data(), all.size());
    const LayerRange stack{0, static_cast<std::uint16_t>(layers(module).size())};
    ChunkContext context;
    context.precision = scenario.training.precision;
    context.weight_grad = module.trainable != Trainable::frozen;
    context.recompute = layout.modules[m].recompute;
    context.recomputed = recomputed_layers(layout.modules[m]);
    const bool visited = needs_backward(model, ModuleId(m));
    costs.emplace_back();
    for (int layer = 0; layer < stack.end; ++layer) {
      const auto flops = [&](Phase phase) {
        return total_flops(expand_layer(module, stack, layer, phase, size, context)).value;
      };
      costs.back().emplace_back(flops(Phase::forward) + (visited ? flops(Phase::backward) : 0));
    }
  }
  return costs;
}

// By stage: the first rank that has a forward of it; check_turns() names stages that are nobody's
// or several ranks'.
std::vector<int> ranks_of(const std::vector<Turns>& turns, int stages) {
  std::vector<int> ranks(static_cast<std::size_t>(stages), -1);
  for (std::size_t rank = 0; rank < turns.size(); ++rank)
    for (const Turn& turn : turns[rank]) {
      if (!is_forward(turn) || turn.stage >= stages) continue;
      int& of = ranks[turn.stage];
      if (of < 0) of = static_cast<int>(rank);
    }
  for (int& rank : ranks) rank = std::max(rank, 0);
  return ranks;
}

Branch make_branch(const Model& model, const Layout& layout, const LayerCosts& costs,
                   const std::vector<ModuleId>& modules, const ModuleLayout& grid, int microbatches,
                   const Schedule& schedule, const std::vector<Turns>& turns = {}) {
  Branch branch{grid, {}, microbatches};
  const int stages = grid.pp * grid.vpp;
  branch.stages = make_stages(model, layout, costs, modules, stages, branch.grid.blocks);
  if (!turns.empty()) branch.rank_of_stage = ranks_of(turns, stages);
  for (int s = 0; s < stages && turns.empty(); ++s)
    branch.rank_of_stage.push_back(schedule.place({grid.pp, grid.vpp}, s));
  return branch;
}

}  // namespace

std::vector<Stage> make_stages(const Model& model, const Layout& layout, const LayerCosts& costs,
                               const std::vector<ModuleId>& modules, int stages,
                               std::vector<int>& blocks) {
  Units units(model, layout, costs);
  for (const ModuleId id : modules) units.add_module(id);
  if (blocks.empty()) {
    Chain chain;
    for (const Unit& unit : units.units()) chain.costs.push_back(unit.cost);
    blocks = partition_chain(chain, stages);
  }
  std::vector<Stage> made;
  std::size_t next = 0;
  for (const int size : blocks) {
    const std::size_t end = next + static_cast<std::size_t>(size);
    POLYPHONY_CHECK(end <= units.units().size(), end << " blocks asked for");
    made.push_back(units.join(next, end));
    next = end;
  }
  POLYPHONY_CHECK(next == units.units().size(),
                  next << " of " << units.units().size() << " blocks placed");
  return made;
}

int encoder_works(const Layout& layout, const ModuleLayout& grid, const ModuleLayout& language) {
  if (layout.encoder_microbatches > 0) return layout.encoder_microbatches;
  const bool shares = grid.first_rank == language.first_rank && grid.ranks == language.ranks;
  const bool in_turn = shares && layout.encoder_order == EncoderOrder::in_turn;
  return in_turn && language.pp > 1 ? 1 : layout.microbatches;
}

int cell_ranks(const ModuleLayout& grid) {
  const int experts = grid.experts_tp() == 1 ? grid.ep : grid.ep * grid.tp;
  return std::max(grid.tp * grid.cp, grid.ep > 1 ? experts : 1);
}

bool is_split(const Model& model, const Layout& layout) {
  const auto split = [](const ModuleLayout& grid) {
    return !grid.blocks.empty() || grid.pp * grid.vpp == 1;
  };
  if (layout.placement == Placement::homogeneous) return split(layout.modules.back());
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].kind != ModuleKind::projector && !split(layout.modules[m])) return false;
  return true;
}

Layout with_blocks(Layout layout, const Plan& plan) {
  for (const Branch& branch : plan.branches) {
    if (branch.stages.size() < 2) continue;
    const bool one = plan.branches.size() == 1;
    const std::size_t owner =
        one ? layout.modules.size() - 1 : branch.stages.front().chunks.front().module.value;
    layout.modules[owner].blocks = branch.grid.blocks;
  }
  return layout;
}

Plan make_plan(const Scenario& scenario, const Layout& layout, const LayerCosts& given) {
  const LayerCosts costs =
      given.empty() && !is_split(scenario.model, layout) ? count_flops(scenario, layout) : given;
  const Model& model = scenario.model;
  std::vector<ModuleId> owners;  // modules that projectors cling to
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].kind != ModuleKind::projector) owners.emplace_back(m);
  const ModuleId language = language_module(model);
  const Schedule &own = schedule(layout.schedule), &others = schedule(own.following);
  const ModuleLayout& grid = layout.modules[language.value];
  Plan plan;
  if (layout.placement == Placement::homogeneous || owners.size() == 1) {
    plan.branches.push_back(make_branch(model, layout, costs, owners, layout.modules.back(),
                                        layout.microbatches, own, layout.turns));
    return plan;
  }
  for (const ModuleId id : owners) {
    const ModuleLayout& module_grid = layout.modules[id.value];
    if (id == language) plan.language = plan.branches.size();
    const int works =
        id < language ? encoder_works(layout, module_grid, grid) : layout.microbatches;
    plan.branches.push_back(make_branch(model, layout, costs, {id}, module_grid, works,
                                        id == language ? own : others,
                                        id == language ? layout.turns : std::vector<Turns>{}));
  }
  return plan;
}

}  // namespace polyphony
