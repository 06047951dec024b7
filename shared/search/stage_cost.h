// Times of one pipeline stage in closed form: the parts that shared/search/bound.h adds up.
// Remembers what layouts have in common: the time of each kind of layer per module, tensor-parallel
// size and cut. Source: own count, of what shared/plan/ lowers and shared/cost/ prices.
#pragma once

#include <array>
#include <map>
#include <tuple>

#include "shared/cost/cost_model.h"
#include "shared/hardware/hardware.h"
#include "shared/search/layout_view.h"
#include "shared/search/stack_layers.h"

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

// Layers and profile must outlive it.
class StageCosts {
 public:
  StageCosts(StackLayers& layers, const HardwareProfile& profile, const Batch& batch);

  StageCost cost(const LayoutView& view, std::size_t branch, std::size_t stage);
  Seconds scalar_time(int ranks);            // all-reduce of the step's scalars
  bool coupled() const { return coupled_; }  // every sample has an image
  const Cluster& cluster() const { return scenario_.cluster; }
  const HardwareProfile& profile() const { return profile_; }

 private:
  using Times = std::array<LayerTimes, StackLayers::kPositions>;
  const Times& times(const LayoutView& view, std::size_t branch, ModuleId module);
  const Ring& gradient_ring(const ModuleLayout& grid, int index);  // along the pipeline
  LayerTimes time_position(const ModuleLoad& load, ModuleId module, std::size_t position,
                           const LayerCut& cut) const;
  LayerTimes time_layer(const ModuleLoad& load, ModuleId module, LayerRange layer,
                        std::size_t position, const LayerCut& cut) const;
  void add_times(const LayoutView& view, std::size_t branch, std::size_t stage, StageCost& cost);
  void add_parameters(const LayoutView& view, std::size_t branch, std::size_t stage,
                      StageCost& cost);
  Seconds least_message(const ModuleLayout& grid, Bytes bytes) const;

  StackLayers& layers_;
  const Scenario& scenario_;
  const HardwareProfile& profile_;
  const bool coupled_;
  // By load, branch, module and cut.
  std::map<std::tuple<LayoutView::Key, std::size_t, std::uint32_t, LayerCut>, Times> times_;
  std::map<std::tuple<int, int, int>, Ring>
      rings_;  // first rank's place in its node, stride, lanes
  std::map<int, Seconds> scalars_;
};

}  // namespace polyphony
