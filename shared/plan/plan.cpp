#include "shared/plan/plan.h"

#include <algorithm>

#include "shared/chunk/expand_layer.h"
#include "shared/model/chain_grid.h"
#include "shared/plan/item_cost.h"
#include "shared/plan/links.h"
#include "shared/plan/stages.h"
#include "shared/planner/entrain.h"
#include "shared/program/work.h"
#include "shared/scenario/typical_batch.h"

namespace polyphony {
namespace {

// Returns the FLOPs of each layer over a typical batch, before it is divided over ranks.
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
    ModuleLayout one;
    one.recompute = layout.modules[m].recompute;
    one.recompute_blocks = layout.modules[m].recompute_blocks;
    const ChunkContext context =
        chunk_context(model, ModuleId(m), 0, one, scenario.training.precision);
    const bool visited = needs_backward(model, ModuleId(m));
    costs.emplace_back();
    for (int layer = 0; layer < stack.end; ++layer) {
      const auto flops = [&](Phase phase) {
        return Seconds(total_flops(expand_layer(module, stack, layer, phase, size, context)).value);
      };
      costs.back().push_back(
          {flops(Phase::forward), visited ? flops(Phase::backward) : Seconds(0), {}});
    }
  }
  return costs;
}

// Returns the module with which a layout states the blocks and costs of a branch.
ModuleId holder_of(const Layout& layout, const Plan& plan, const Branch& branch) {
  if (plan.branches.size() == 1) return ModuleId(layout.modules.size() - 1);
  return branch.stages.front().chunks.front().module;
}

Branch make_branch(const Model& model, const Layout& layout, const Splitting& by,
                   const std::vector<ModuleId>& modules, const ModuleLayout& grid, int microbatches,
                   bool language) {
  Branch branch{grid, {}, microbatches, ranks_of_stages(layout, grid, language)};
  branch.stages = make_stages(model, layout, by, modules, branch.grid, branch.rank_of_stage);
  return branch;
}

}  // namespace

int encoder_works(const Layout& layout, const ModuleLayout& grid, const ModuleLayout& language) {
  if (layout.encoder_microbatches > 0) return layout.encoder_microbatches;
  if (layout.planner == Planning::dip) return layout.microbatches;
  const bool shares = same_ranks(grid, language);
  const bool in_turn = shares && layout.encoder_order == EncoderOrder::in_turn;
  return in_turn && language.pp > 1 ? 1 : layout.microbatches;
}

int cell_ranks(const ModuleLayout& grid) {
  const int experts = grid.experts_tp() == 1 ? grid.ep : grid.ep * grid.tp;
  return std::max(grid.tp * grid.cp, grid.ep > 1 ? experts : 1);
}

bool is_split(const Scenario& scenario, const Layout& layout) {
  const auto told = [&](std::size_t m) {
    const ModuleLayout& grid = layout.modules[m];
    if (grid.blocks.empty() && grid.pp * grid.vpp > 1) return false;
    const ModuleCosts costs = costs_of(scenario.planner_costs, ModuleId(m));
    return (layout.planner != Planning::entrain || costs.item) &&
           (layout.planner != Planning::dip || costs.stages);
  };
  if (layout.placement == Placement::homogeneous) return told(layout.modules.size() - 1);
  for (std::size_t m = 0; m < layout.modules.size(); ++m)
    if (scenario.model.modules[m].kind != ModuleKind::projector && !told(m)) return false;
  return true;
}

Layout with_blocks(Layout layout, const Plan& plan) {
  for (const Branch& branch : plan.branches)
    if (branch.stages.size() > 1)
      layout.modules[holder_of(layout, plan, branch).value].blocks = branch.grid.blocks;
  return layout;
}

void store_planned(const Layout& layout, const Plan& plan, Scenario& scenario) {
  PlannerCosts costs;
  for (const Branch& branch : plan.branches)
    if (branch.costs != ModuleCosts{}) costs[holder_of(layout, plan, branch)] = branch.costs;
  scenario.layout = with_blocks(layout, plan);
  scenario.planner_costs = std::move(costs);
}

Plan make_plan(const Scenario& scenario, const Layout& layout, const Splitting& given) {
  const Splitting by = given.layers.empty() && !is_split(scenario, layout)
                           ? Splitting{.layers = count_flops(scenario, layout)}
                           : given;
  const Model& model = scenario.model;
  const std::vector<ModuleId> owners = chain_modules(model);
  const ModuleId language = language_module(model);
  const ModuleLayout& grid = layout.modules[language.value];
  Plan plan;
  if (layout.placement == Placement::homogeneous || owners.size() == 1) {
    plan.branches.push_back(make_branch(model, layout, by, owners, chain_grid(model, layout),
                                        layout.microbatches, true));
    plan.branches.back().costs =
        costs_of(scenario.planner_costs, ModuleId(layout.modules.size() - 1));
    return plan;
  }
  for (const ModuleId id : owners) {
    const ModuleLayout& module_grid = layout.modules[id.value];
    if (id == language) plan.language = plan.branches.size();
    const bool weighed = layout.planner == Planning::entrain;
    const int works = id > language || id == language ? layout.microbatches
                      : weighed                       ? works_with_deferred(layout.microbatches)
                                                      : encoder_works(layout, module_grid, grid);
    plan.branches.push_back(
        make_branch(model, layout, by, {id}, module_grid, works, id == language));
    ModuleCosts& costs = plan.branches.back().costs;
    costs = costs_of(scenario.planner_costs, id);
    if (weighed && !costs.item)
      costs.item = by.items.empty() ? item_flops(scenario, id) : by.items.at(id.value);
  }
  return plan;
}

}  // namespace polyphony
