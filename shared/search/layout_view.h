// How a layout cuts a batch over lanes and modules into stages: what its closed forms
// (shared/search/bound.h) are summed over. Remembers what layouts have in common. Source: own
// count, of what shared/plan/ plans.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"
#include "shared/scenario/scenario.h"
#include "shared/schedule/orders.h"
#include "shared/search/lane_load.h"

namespace polyphony {

// A layout, how it cuts the batch, and its stages.
struct LayoutView {
  // Placement, work items of both branches, lanes of both branches: what decides how the batch is
  // cut.
  using Key = std::tuple<Placement, int, int, int, int>;
  const Layout* layout = nullptr;
  Key key;
  Plan plan;  // grids and works only
  const BranchLoads* loads = nullptr;
  const std::vector<std::vector<Stage>>* stages = nullptr;  // by branch
};

// Scenario and profile must outlive it.
class LayoutViews {
 public:
  LayoutViews(const Scenario& scenario, const HardwareProfile& profile, const Batch& batch);

  LayoutView look(const Layout& layout);
  // What each rank along a branch's pipeline has in flight (shared/schedule/orders.h).
  const std::vector<StagesInFlight>& in_flight(const LayoutView& view, std::size_t branch);
  std::string stage_name(const LayoutView& view, std::size_t branch, std::size_t stage) const;

 private:
  // All of a grid that its split into stages depends on.
  using GridKey = std::tuple<int, int, int, int, int, int, int, int, bool, Shard, Recompute,
                             std::vector<int>, std::vector<int>>;
  static GridKey key_of(const ModuleLayout& grid);

  const Scenario& scenario_;
  const HardwareProfile& profile_;
  const LaneLoads lane_loads_;
  const std::vector<WorkSize> typical_;  // of the typical batch by module
  std::map<LayoutView::Key, BranchLoads> loads_;
  std::map<std::tuple<Placement, int, GridKey, GridKey>, std::vector<std::vector<Stage>>> stages_;
  // By schedule, placement, branch, then pp, vpp and works of the language module's branch, pp and
  // works of the encoder's.
  std::map<std::tuple<ScheduleKind, Placement, std::size_t, int, int, int, int, int>,
           std::vector<StagesInFlight>>
      in_flight_;
};

// The place of a stage among the ranks along its branch's pipeline.
int index_of(const LayoutView& view, std::size_t branch, std::size_t stage);

}  // namespace polyphony
