// Times and bytes of one pipeline stage in closed form: the parts that shared/search/bound.h adds
// up. Remembers what layouts have in common: how a batch is cut over lanes, stage splits, and the
// time of each kind of layer per module, tensor-parallel size and cut. Source: own count, of what
// shared/plan/ lowers and shared/cost/ prices.
#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "shared/cost/cost_model.h"
#include "shared/hardware/hardware.h"
#include "shared/layers/held_sizes.h"
#include "shared/plan/plan.h"
#include "shared/scenario/scenario.h"
#include "shared/schedule/orders.h"
#include "shared/search/lane_load.h"

namespace polyphony {

// Sums over layers of one rank.
struct LayerTimes {
  Seconds lane{};      // forward, recompute and backward of all work items of the busiest lane
  Seconds forward{};   // of the smallest work item
  Seconds backward{};  // of the smallest work item, recompute included
  Seconds full_forward{}, full_backward{};  // of the smallest work item that has tokens
  LayerTimes& operator+=(const LayerTimes& other);
  LayerTimes operator*(int times) const;
};

struct StageCost {
  LayerTimes times;
  Seconds message{};      // smallest, to the next stage of the branch or back
  bool rows_flow = true;  // every work item sends rows to the next stage, so that it waits
  bool has_backward = false;
  Seconds reduction{};   // of the gradients that are ready last
  Seconds reductions{};  // of all gradients
  Seconds update{};      // and the gathers of sharded parameters
};

// Bytes on one rank of a stage.
struct StageMemory {
  Bytes fixed{};    // parameters, gradients, optimizer state
  Bytes largest{};  // tape of the largest work item
  // Of a lane's work items together: tapes; what weight parts wait with; what of it is in the tapes.
  Bytes lane{}, weights{}, kept{};
  int works = 1;  // of a lane
  Bytes
      transient{};  // while an op runs: what recomputation rebuilds, boundaries and received ahead
  // The largest tape once, the others at the lane's mean.
  Bytes held(const InFlight& works_in_flight) const;
};

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

class StageCosts {
 public:
  StageCosts(const Scenario& scenario, const HardwareProfile& profile, const Batch& batch);

  LayoutView look(const Layout& layout);
  StageCost cost(const LayoutView& view, std::size_t branch, std::size_t stage);
  StageMemory memory(const LayoutView& view, std::size_t branch, std::size_t stage);
  // What each rank along a branch's pipeline has in flight (shared/schedule/orders.h).
  const std::vector<StagesInFlight>& in_flight(const LayoutView& view, std::size_t branch);
  Seconds scalar_time(int ranks);            // all-reduce of the step's scalars
  bool coupled() const { return coupled_; }  // every sample has an image
  int index_of(const LayoutView& view, std::size_t branch, std::size_t stage) const;
  std::string stage_name(const LayoutView& view, std::size_t branch, std::size_t stage) const;
  const Cluster& cluster() const { return scenario_.cluster; }
  const HardwareProfile& profile() const { return profile_; }

 private:
  enum Position : std::size_t {
    kFirst,
    kBlock,
    kRecomputed,  // a block, too
    kLast,
    kPositions
  };  // the different layers of a stack
  using Counts = std::array<int, kPositions>;
  using Times = std::array<LayerTimes, kPositions>;
  // Of one module under one load: tapes by position, and what a recomputed block makes in its
  // backward.
  struct Tapes {
    std::array<Bytes, kPositions> largest,
        lane;  // of the largest work item; of the busiest lane's together
    std::array<Bytes, kPositions> weights, kept;  // likewise: what weight parts of their own wait
                                                  // with, and what of it is in the tape
    Bytes rebuilt;
  };
  using ModuleKey =
      std::tuple<LayoutView::Key, std::size_t, std::uint32_t, int>;  // load, branch, module, tp

  // All of a grid that its split into stages depends on.
  using GridKey = std::tuple<int, int, int, int, int, int, int, int, bool, Shard, Recompute,
                             std::vector<int>, std::vector<int>>;
  static GridKey key_of(const ModuleLayout& grid);

  Counts count_layers(const Chunk& chunk, const ModuleLayout& layout) const;
  // The layer at a position; of blocks one of each kind, and how many there are: the least of their
  // times is what a bound may count, the mean of their bytes what a stage holds.
  struct Alike {
    LayerRange layer;
    int count = 1;
  };
  std::vector<Alike> layers_at(ModuleId module, std::size_t position) const;
  ModuleKey key(const LayoutView& view, std::size_t branch, ModuleId module) const {
    return {view.key, branch, module.value, view.layout->modules[module.value].tp};
  }
  const Times& times(const LayoutView& view, std::size_t branch, ModuleId module);
  const Tapes& tapes(const LayoutView& view, std::size_t branch, ModuleId module);
  const Ring& gradient_ring(const ModuleLayout& grid, int index);  // along the pipeline
  ChunkContext context_at(ModuleId module, std::size_t position, const ModuleLayout& layout) const;
  LayerTimes time_position(const ModuleLoad& load, ModuleId module, std::size_t position,
                           const ModuleLayout& layout) const;
  LayerTimes time_layer(const ModuleLoad& load, ModuleId module, LayerRange layer,
                        std::size_t position, const ModuleLayout& layout) const;
  HeldElements local_parameters_of(const Chunk& chunk, int tp);
  void add_times(const LayoutView& view, std::size_t branch, std::size_t stage, StageCost& cost);
  void add_parameters(const LayoutView& view, std::size_t branch, std::size_t stage,
                      StageCost& cost);
  Seconds least_message(const ModuleLayout& grid, Bytes bytes) const;

  const Scenario scenario_;
  const HardwareProfile profile_;
  const LaneLoads lane_loads_;
  bool coupled_ = false;
  std::vector<int> stack_;         // layers by module
  std::vector<WorkSize> typical_;  // of the typical batch by module
  std::map<LayoutView::Key, BranchLoads> loads_;
  std::map<std::tuple<Placement, int, GridKey, GridKey>, std::vector<std::vector<Stage>>> stages_;
  std::map<std::pair<ModuleKey, Recompute>, Times> times_;
  std::map<std::pair<ModuleKey, Recompute>, Tapes> tapes_;
  std::map<std::tuple<std::uint32_t, int>, std::array<HeldElements, kPositions>> parameters_;
  std::map<std::tuple<int, int, int>, Ring>
      rings_;  // first rank's place in its node, stride, lanes
  std::map<int, Seconds> scalars_;
  // By schedule, placement, branch, then pp, vpp and works of the language module's branch, pp and
  // works of the encoder's.
  std::map<std::tuple<ScheduleKind, Placement, std::size_t, int, int, int, int, int>,
           std::vector<StagesInFlight>>
      in_flight_;
};

}  // namespace polyphony
