// Times of one pipeline stage in closed form: the parts that shared/screen/bound.h adds up.
// Remembers what layouts have in common: the time of each kind of layer per load and cut, rings by
// where they lie. Source: own count, of what shared/plan/ lowers and shared/cost/ prices.
#pragma once

#include <vector>

#include "shared/cost/cost_model.h"
#include "shared/hardware/hardware.h"
#include "shared/screen/layout_view.h"
#include "shared/screen/least_times.h"
#include "shared/screen/parameter_counts.h"
#include "shared/screen/stack_layers.h"

namespace polyphony {

// Sums over layers of one rank.
struct LayerTimes {
  Seconds lane{};      // forward, recompute and backward of all work items of the busiest column
  Seconds forward{};   // of the smallest work item
  Seconds backward{};  // of the smallest work item, recompute included
  Seconds full_forward{}, full_backward{};  // of the smallest work item that has tokens
  Seconds weights{};  // of `lane`, what follows the input parts where weight parts are actions of
                      // their own; the backwards above are input parts then
  LayerTimes& operator+=(const LayerTimes& other);
  LayerTimes operator*(int times) const;
};

struct StagePrice {
  LayerTimes times;
  Seconds message{};     // smallest, to the next stage of the branch or back
  bool flows = true;     // every work item sends rows to the next stage, so that it waits
  bool returns = false;  // and the next stage sends their gradients
  Seconds reduction{};   // of the gradients that are ready last
  Seconds reductions{};  // of all gradients, after the last backward
  Seconds streamed{};    // gathers and sums of sharded modules beside their ops
  Bytes updated{};
  Seconds gathers{};  // of what the update changed
};

// Layers and profile must outlive it.
class StagePrices {
 public:
  StagePrices(const StackLayers& layers, const HardwareProfile& profile);

  // Before the first stage of a view.
  void start(const LayoutView& view);
  // `index`: of its ranks along the pipeline. `like`: the cost of a stage that is alike().
  StagePrice cost(const LayoutView& view, StageOfBranch stage, int index, bool splits,
                  const StagePrice* like);
  // Whether, but for messages, that is known to be the same for the stage and the one after it.
  bool alike(const LayoutView& view, StageOfBranch stage, int index, int next) const;
  LayerTimes times(const LayoutView& view, StageOfBranch stage, bool splits);
  const Scenario& scenario() const { return scenario_; }
  Seconds update_time(Bytes updated) const;
  LeastTimes& rings() { return rings_; }
  const LeastTimes& rings() const { return rings_; }

 private:
  // By position; of a module with measured times by layer, kept and recomputed.
  using Times = std::vector<LayerTimes>;
  bool measured(ModuleId module) const {
    return profile_.layer_times.contains(layers_.module(module).name);
  }
  const Times& layer_times_of(const LayoutView& view, std::size_t branch, ModuleId module,
                              bool splits);
  // Of one layer, which stands at the position.
  LayerTimes time_layer(const BranchLoad& load, ModuleId module, LayerRange layer,
                        std::size_t position, const LayerCut& cut, const InnerRings& rings,
                        bool splits) const;
  // Of a chunk's parameters.
  struct ChunkCost {
    Seconds reduction{}, scatter{}, gathers{}, beside{};
    Bytes updated{};
  };
  ChunkCost chunk_cost(const LayoutView& view, StageOfBranch stage, const ModuleLayout& layout,
                       const ChunkElements& sums, int first);
  void add_message(const LayoutView& view, StageOfBranch stage, StagePrice& cost) const;
  void add_parameters(const LayoutView& view, StageOfBranch stage, int index, StagePrice& cost);
  bool follows(const LayerRun& before, const LayerRun& after) const;

  // Of the view in hand, by module: found once.
  struct Found {
    const Times* times = nullptr;
    const LayerParameterCounts* elements = nullptr;
    LayerRange again;
  };

  const StackLayers& layers_;
  const Scenario& scenario_;
  const HardwareProfile& profile_;
  LeastTimes rings_;
  ParameterCounts parameters_;
  Known<Times> times_;
  std::vector<Found> found_;
  Key key_;
};

}  // namespace polyphony
