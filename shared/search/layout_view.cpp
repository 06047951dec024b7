#include "shared/search/layout_view.h"

#include <utility>

#include "shared/cost/layer_costs.h"
#include "shared/plan/step_plan.h"
#include "shared/scenario/typical_batch.h"
#include "shared/search/balanced_plan.h"

namespace polyphony {

LayoutViews::LayoutViews(const Scenario& scenario, const HardwareProfile& profile,
                         const Batch& batch)
    : scenario_(scenario),
      profile_(profile),
      lane_loads_(scenario.model, batch),
      typical_(module_sizes(scenario.model, typical_batch(scenario))) {}

LayoutView LayoutViews::look(const Layout& layout) {
  const std::size_t modules = scenario_.model.modules.size();
  const ModuleLayout &encoder = layout.modules.front(), &language = layout.modules.back();
  const bool one = layout.placement == Placement::homogeneous || modules == 1;
  const int works = encoder_works(layout, encoder, language);
  LayoutView view;
  view.layout = &layout;
  if (!one) view.plan.branches.push_back({encoder, {}, works});
  view.plan.branches.push_back({language, {}, layout.microbatches});
  view.plan.language = view.plan.branches.size() - 1;
  view.key = {layout.placement, layout.microbatches, one ? 0 : works, language.dp(),
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

LayoutViews::GridKey LayoutViews::key_of(const ModuleLayout& grid) {
  return {grid.tp,    grid.cp,    grid.pp,        grid.vpp,
          grid.ep,    grid.ranks, grid.expert_tp, grid.first_rank,
          grid.sp,    grid.shard, grid.recompute, grid.recompute_blocks,
          grid.blocks};
}

std::string LayoutViews::stage_name(const LayoutView& view, std::size_t branch,
                                    std::size_t stage) const {
  const Chunk& last = (*view.stages)[branch][stage].chunks.back();
  return scenario_.model.modules[last.module.value].name + " stage " + std::to_string(stage);
}

int index_of(const LayoutView& view, std::size_t branch, std::size_t stage) {
  if (branch != view.plan.language) return static_cast<int>(stage);
  const ModuleLayout& grid = view.plan.branches[branch].grid;
  return schedule(view.layout->schedule).place({grid.pp, grid.vpp}, static_cast<int>(stage));
}

const std::vector<StagesInFlight>& LayoutViews::in_flight(const LayoutView& view,
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

}  // namespace polyphony
