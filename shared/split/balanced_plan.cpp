#include "shared/split/balanced_plan.h"
#include "shared/screen/hop_times.h"

#include <algorithm>
#include <memory>

#include "shared/check/check.h"
#include "shared/cost/layer_costs.h"
#include "shared/plan/item_cost.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "shared/split/fitted_costs.h"

namespace polyphony {

Splitting splitting(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                    const std::vector<WorkSize>& typical) {
  Splitting by{layer_costs(scenario, layout, typical, profile),
               hop_times(scenario.cluster, profile)};
  if (layout.planner != Planning::entrain) return by;
  const Batch batch = typical_batch(scenario);
  const Cluster healthy = scenario.cluster.healthy();
  for (std::size_t m = 0; m < layout.modules.size(); ++m)
    by.items.push_back(fit_item_cost(
        scenario.model, ModuleId(m), batch, [&](ModuleId module, const WorkSize& size) {
          ModuleLayout lane = layout.modules[module.value];
          lane.ranks = lane.tp * lane.cp * lane.pp;
          Seconds sum{};
          for (const LayerCost& layer :
               layer_costs(scenario, module, lane, 1, size, healthy, profile))
            sum += layer.total();
          return sum.count();
        }));
  return by;
}

std::function<double(ModuleId, const std::vector<int>&, int)> bytes_above(Bytes room,
                                                                          const Layout& quickest,
                                                                          bool one_branch,
                                                                          Screen& screen) {
  return [room, quickest, one_branch, &screen](ModuleId first, const std::vector<int>& blocks,
                                               int stage) {
    Layout split = quickest;
    split.modules[one_branch ? split.modules.size() - 1 : first.value].blocks = blocks;
    const Bytes more = screen.memory(split, first, stage) - room;
    return static_cast<double>(std::max(more, Bytes{}).value);
  };
}

Plan balanced_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile) {
  if (is_split(scenario, layout)) return make_plan(scenario, layout);
  return balanced_plan(scenario, layout, profile,
                       module_sizes(scenario.model, typical_batch(scenario)));
}

namespace {

// Returns the most equal split that fits in `room`; if none does, memory is ignored.
Plan split_for(const Scenario& scenario, const Layout& layout, Splitting by, const Layout& quickest,
               bool one_branch, Bytes room, Screen& screen) {
  by.lacks = bytes_above(room, quickest, one_branch, screen);
  return make_plan(scenario, layout, by);
}

}  // namespace

namespace {

Plan split_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                const std::vector<WorkSize>& typical) {
  const Splitting by = splitting(scenario, layout, profile, typical);
  Plan plan = make_plan(scenario, layout, by);
  const Bytes room = scenario.cluster.device.memory;
  if (room.value == 0 || layout.balance == Balance::unaware) return plan;
  Screen screen(scenario, profile, typical_batch(scenario));
  const Layout quickest = with_blocks(layout, plan);
  if (screen.footprint(quickest).memory <= room) return plan;
  return split_for(scenario, layout, by, quickest, plan.branches.size() == 1, room, screen);
}

}  // namespace

Plan balanced_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                   const std::vector<WorkSize>& typical) {
  if (is_split(scenario, layout)) return make_plan(scenario, layout);
  Plan plan = split_plan(scenario, layout, profile, typical);
  if (layout.planner == Planning::dip) fit_stage_costs(scenario, layout, profile, plan);
  return plan;
}

std::optional<Layout> fitting_split(const Scenario& scenario, const Layout& layout,
                                    const HardwareProfile& profile,
                                    const std::vector<WorkSize>& typical, Bytes room,
                                    Screen& screen) {
  if (is_split(scenario, layout)) return {};
  const Splitting by = splitting(scenario, layout, profile, typical);
  const Plan plan = make_plan(scenario, layout, by);
  const Layout split =
      with_blocks(layout, split_for(scenario, layout, by, with_blocks(layout, plan),
                                    plan.branches.size() == 1, room, screen));
  if (check_layout(scenario, split) || screen.footprint(split).memory > room) return {};
  return split;
}

}  // namespace polyphony
