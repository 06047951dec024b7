#include "shared/screen/layout_view.h"

#include <algorithm>
#include <utility>

#include "shared/cost/layer_costs.h"
#include "shared/model/chain_grid.h"
#include "shared/plan/stages.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/hop_times.h"
#include "shared/step/step_plan.h"

namespace polyphony {

bool leads(const LayoutView& view, const RankMoments& rank, std::size_t branch) {
  if (branch == view.language) return true;
  for (const StageOfBranch& stage : rank.stages)
    if (stage.branch == view.language || stage.branch < branch) return false;
  return true;
}

LayoutViews::LayoutViews(const Scenario& scenario, const HardwareProfile& profile,
                         const Batch& batch)
    : scenario_(scenario),
      profile_(profile),
      healthy_(scenario.cluster.healthy()),
      hops_(hop_times(scenario.cluster, profile)),
      typical_(module_sizes(scenario.model, typical_batch(scenario))),
      loads_(scenario.model, batch),
      chain_(make_parts(true)),
      separate_(make_parts(false)) {}

LayoutViews::Parts LayoutViews::make_parts(bool chain) const {
  const Model& model = scenario_.model;
  Parts parts;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    if (grid_owner(model, ModuleId(m)) != ModuleId(m)) continue;
    if (parts.modules.empty() || !chain) {
      parts.modules.emplace_back();
      parts.owners.emplace_back();
    }
    if (ModuleId(m) == language_module(model)) parts.language = parts.modules.size() - 1;
    parts.owners.back().emplace_back(m);
    for (std::size_t other = 0; other < model.modules.size(); ++other)
      if (grid_owner(model, ModuleId(other)) == ModuleId(m))
        parts.modules.back().emplace_back(other);
  }
  for (const std::vector<ModuleId>& modules : parts.modules)
    parts.everywhere.push_back(loads_.everywhere(modules));
  return parts;
}

const LayoutView& LayoutViews::look(const Layout& layout) {
  const bool chain = layout.placement == Placement::homogeneous || separate_.modules.size() == 1;
  const Parts& parts = chain ? chain_ : separate_;
  const ModuleLayout* all = &layout.modules.back();
  if (chain && language_module(scenario_.model).value + 1 < layout.modules.size()) {
    chain_grid_ = chain_grid(scenario_.model, layout);
    all = &chain_grid_;
  }
  view_.layout = &layout;
  view_.language = parts.language;
  view_.differing = false;
  view_.branches.resize(parts.modules.size());
  const auto grid_of = [&](std::size_t b) -> const ModuleLayout& {
    return chain ? *all : layout.modules[parts.owners[b].front().value];
  };
  const ModuleLayout& language = grid_of(parts.language);
  for (std::size_t b = 0; b < parts.modules.size(); ++b) {
    BranchView& branch = view_.branches[b];
    branch.modules = &parts.modules[b];
    branch.grid = &grid_of(b);
    // Sub-microbatches count as one microbatch; no search makes them.
    branch.works = b < parts.language ? std::min(layout.microbatches,
                                                 encoder_works(layout, *branch.grid, language))
                                      : layout.microbatches;
    branch.shared = false;
    for (std::size_t other = 0; other < parts.modules.size(); ++other)
      branch.shared = branch.shared || (other != b && same_ranks(grid_of(other), *branch.grid));
    branch.load = &loads_.load(parts.modules[b], *branch.grid, branch.works, layout.microbatches);
    view_.differing = view_.differing || branch.load->counts.size() > 1;
    branch.stages = &split(layout, b, parts, *branch.grid);
  }
  view_.ranks = &ranks_of(layout);
  return view_;
}

bool LayoutViews::everywhere(const LayoutView& view, std::size_t branch) const {
  return (view.branches.size() == separate_.modules.size() ? separate_ : chain_).everywhere[branch];
}

const std::vector<LayerCost>& LayoutViews::costs(const Layout& layout, ModuleId module) {
  const ModuleLayout& grid = layout.modules[module.value];
  key_ = {static_cast<int>(module.value), grid.first_rank, grid.dp(), layout.microbatches};
  LayerCut(grid).add_to(key_);
  key_.insert(key_.end(), grid.recompute_blocks.begin(), grid.recompute_blocks.end());
  return costs_.get(key_, [&] {
    return layer_costs(scenario_, module, grid, layout.microbatches, typical_[module.value],
                       healthy_, profile_);
  });
}

const std::vector<StageRuns>& LayoutViews::split(const Layout& layout, std::size_t branch,
                                                 const Parts& parts, const ModuleLayout& grid) {
  const int stages = grid.pp * grid.vpp;
  const bool given = !grid.blocks.empty() || stages == 1;
  const std::vector<int> ranks = ranks_of_stages(layout, grid, branch == parts.language);
  Key key{static_cast<int>(branch), parts.modules.size() == 1 ? 1 : 0, stages};
  if (given) {
    key.push_back(-1);
    key.insert(key.end(), grid.blocks.begin(), grid.blocks.end());
  } else {
    key.insert(key.end(), {layout.microbatches, static_cast<int>(layout.balance)});
    if (grid.vpp > 1) key.insert(key.end(), ranks.begin(), ranks.end());
    for (const ModuleId id : parts.modules[branch]) {
      const ModuleLayout& of = layout.modules[id.value];
      key.insert(key.end(), {of.first_rank, of.dp()});
      LayerCut(of).add_to(key);
      key.push_back(static_cast<int>(of.recompute_blocks.size()));
      key.insert(key.end(), of.recompute_blocks.begin(), of.recompute_blocks.end());
    }
  }
  return stages_.get(key, [&] {
    Splitting by;
    if (!given) {
      by = {LayerCosts(scenario_.model.modules.size()), hops_};
      for (const ModuleId id : parts.modules[branch]) by.layers[id.value] = costs(layout, id);
    }
    Layout whole = layout;  // runs of fully sharded modules are cut where that is asked
    for (ModuleLayout& of : whole.modules) of.shard = Shard::none;
    ModuleLayout split = grid;
    std::vector<StageRuns> made;
    for (Stage& stage : make_stages(scenario_.model, whole, by, parts.owners[branch], split, ranks))
      made.push_back(std::move(stage.chunks));
    return made;
  });
}

std::string LayoutViews::stage_name(const LayoutView& view, StageOfBranch stage) const {
  const LayerRun& last = (*view.branches[stage.branch].stages)[stage.stage].back();
  return scenario_.model.modules[last.module.value].name + " stage " + std::to_string(stage.stage);
}

// Returns a reduced number of microbatches of each branch at which as many are in flight as at the
// full number: what a schedule holds with many microbatches it also holds with a few.
std::vector<int> LayoutViews::few_works(const Layout& layout) const {
  std::vector<int> works;
  bool all_shared = true, any_shared = false;
  for (std::size_t b = 0; b < view_.branches.size(); ++b) {
    const BranchView& branch = view_.branches[b];
    works.push_back(branch.works);
    if (b == view_.language) continue;
    const bool shared = same_ranks(*branch.grid, *view_.branches[view_.language].grid);
    all_shared = all_shared && shared;
    any_shared = any_shared || shared;
  }
  const bool in_turn = layout.encoder_order == EncoderOrder::in_turn;
  const bool unlike =
      std::any_of(view_.branches.begin(), view_.branches.end(), [&](const BranchView& branch) {
        return &branch != &view_.branches[view_.language] &&
               (branch.grid->vpp > 1 || (!any_shared && branch.works != layout.microbatches));
      });
  if (!layout.actions.empty() || unlike) return works;
  if (any_shared && (!all_shared || !in_turn)) return works;
  if (any_shared) {  // every part is the same
    for (std::size_t b = 0; b < view_.language; ++b) works[b] = 1;
    works[view_.language] = layout.microbatches / view_.branches.front().works;
  }
  if (schedule(layout.schedule).keeps_all_activations) return works;
  const int pp = view_.branches[view_.language].grid->pp, now = works[view_.language];
  int most = 4 * pp + 8;
  for (const BranchView& branch : view_.branches) most += 2 * branch.grid->pp + branch.grid->ahead;
  const int few = (most + pp - 1) / pp * pp + now % pp;  // interleaved: in groups of pp
  if (now <= few) return works;
  for (int& of : works)
    if (of == now) of = few;
  return works;
}

// Returns the parts of a plan that the orders of actions need.
Plan LayoutViews::plan_with(const Layout& layout, const std::vector<int>& works) const {
  if (!layout.actions.empty())
    return make_plan(scenario_, layout);  // its own actions, whatever the split
  Plan plan;
  plan.language = view_.language;
  for (std::size_t b = 0; b < view_.branches.size(); ++b)
    plan.branches.push_back({*view_.branches[b].grid, {}, works[b]});
  return plan;
}

Actions LayoutViews::actions(const RankMoments& rank) const {
  std::vector<int> works;
  for (const BranchView& branch : view_.branches) works.push_back(branch.works);
  const Rank of = view_.branches[rank.branch].grid->rank_at(0, 0, 0, rank.index);
  return actions_of(*view_.layout, plan_with(*view_.layout, works), static_cast<int>(of.value));
}

PipelineRanks LayoutViews::make_ranks(const Layout& layout, const std::vector<int>& works) const {
  const Plan plan = plan_with(layout, works);
  Layout few = layout;
  if (layout.actions.empty()) few.microbatches = works[view_.language];
  PipelineRanks ranks;
  for (std::size_t b = 0; b < plan.branches.size(); ++b) {
    const ModuleLayout& grid = plan.branches[b].grid;
    // The branch with the most stages represents those on the same ranks; among equals, the last.
    const bool stands =
        std::none_of(plan.branches.begin(), plan.branches.end(), [&](const Branch& other) {
          return same_ranks(other.grid, grid) &&
                 (other.grid.pp > grid.pp ||
                  (other.grid.pp == grid.pp && &other > &plan.branches[b]));
        });
    for (int p = 0; stands && p < grid.pp; ++p) {
      ranks.push_back(
          moments_of(actions_of(few, plan, static_cast<int>(grid.rank_at(0, 0, 0, p).value))));
      ranks.back().branch = b;
      ranks.back().index = p;
    }
  }
  return ranks;
}

const PipelineRanks& LayoutViews::ranks_of(const Layout& layout) {
  const std::vector<int> works = few_works(layout);
  if (!layout.actions.empty()) return own_ranks_ = make_ranks(layout, works);
  key_ = {static_cast<int>(layout.schedule), static_cast<int>(layout.encoder_order),
          static_cast<int>(view_.language)};
  for (std::size_t b = 0; b < view_.branches.size(); ++b) {
    const BranchView& branch = view_.branches[b];
    int first = 0;  // branch with the same ranks
    while (!same_ranks(*view_.branches[static_cast<std::size_t>(first)].grid, *branch.grid))
      ++first;
    key_.insert(key_.end(),
                {branch.grid->pp, branch.grid->vpp, branch.grid->ahead, works[b], first});
  }
  return ranks_.get(key_, [&] { return make_ranks(layout, works); });
}

}  // namespace polyphony
