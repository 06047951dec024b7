#include "shared/split/encoder_stage.h"

#include <limits>

#include "shared/check/check.h"
#include "shared/model/chain_grid.h"
#include "shared/plan/partition.h"
#include "shared/plan/stages.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "shared/split/balanced_plan.h"

namespace polyphony {

int blocks_of_encoders(const Model& model) {
  int blocks = 0;
  for (const ModuleId id : chain_modules(model))
    if (id < language_module(model)) blocks += model.modules[id.value].layers;
  return blocks;
}

bool leaves_encoder_stage(const Model& model, const Layout& layout) {
  const ModuleLayout& grid = layout.modules.back();
  return layout.placement == Placement::homogeneous && layout.actions.empty() &&
         grid.blocks.empty() && grid.pp * grid.vpp > 1 && blocks_of_encoders(model) > 0;
}

std::optional<Layout> with_encoder_stage(const Scenario& scenario, const Layout& layout,
                                         const HardwareProfile& profile,
                                         const std::vector<WorkSize>& typical, Bytes room) {
  const Model& model = scenario.model;
  const int encoders = blocks_of_encoders(model);
  const ModuleLayout grid = chain_grid(model, layout);
  if (model.modules[language_module(model).value].layers < grid.pp * grid.vpp - 1) return {};
  const std::vector<int> ranks = ranks_of_stages(layout, grid, true);
  Splitting by = splitting(scenario, layout, profile, typical);
  const auto split_by = [&](const Splitting& costs) {
    Chain chain = chain_of(model, layout, costs, chain_modules(model), grid, ranks);
    chain.hop = [hop = chain.hop, encoders](int stage, int begin) {
      constexpr double kNever = std::numeric_limits<double>::infinity();
      if (begin < encoders) return Hop{kNever, kNever};
      return hop ? hop(stage, begin) : Hop{};
    };
    Layout split = layout;
    split.modules.back().blocks = partition_ranks(chain, ranks);
    return split;
  };
  Layout split = split_by(by);
  if (room.value > 0 && layout.balance != Balance::unaware) {
    Screen screen(scenario, profile, typical_batch(scenario));
    if (screen.footprint(split).memory > room) {
      by.lacks = bytes_above(room, split, /*one_branch=*/true, screen);
      split = split_by(by);
    }
  }
  if (split.modules.back().blocks.front() < encoders || check_layout(scenario, split)) return {};
  return split;
}

}  // namespace polyphony
