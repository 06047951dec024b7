// The times of one pipeline stage, in closed form: the terms that shared/screen/bound.h adds up.
// Remembers what layouts have in common: the time of each kind of layer per load and cut, and rings
// by the ranks that they connect. Source: own count, of what shared/plan/ lowers and shared/cost/
// prices.
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
  Seconds lane{};      // forward, recompute, backward of all works of the busiest column
  Seconds forward{};   // of the smallest work
  Seconds backward{};  // of the smallest work, recompute included
  Seconds full_forward{}, full_backward{};  // of the smallest work that has tokens
  Seconds weights{};  // part of `lane`: weight parts of backwards, if they are actions of their
                      // own; the backward times above are then those of the input parts
  LayerTimes& operator+=(const LayerTimes& other);
  LayerTimes operator*(int times) const;
};

struct StagePrice {
  LayerTimes times;
  Seconds message{};     // the smallest, to the next stage of the branch or back
  bool flows = true;     // every work sends rows to the next stage, which waits for them
  bool returns = false;  // the next stage returns their gradients
  Seconds reduction{};   // of the gradients that are ready last
  Seconds reductions{};  // of all gradients, after the last backward
  Seconds streamed{};    // gathers and reductions of sharded modules, overlapped with ops
  Bytes updated{};
  Seconds gathers{};  // of the updated parameters
};

// Layers and profile must outlive it.
class StagePrices {
 public:
  StagePrices(const StackLayers& layers, const HardwareProfile& profile);

  // Must be called before the first stage of a view.
  void start(const LayoutView& view);
  // Returns the times of a stage. `index`: of its ranks along the pipeline. `like`: the result for
  // a stage that is alike(), or null.
  StagePrice cost(const LayoutView& view, StageOfBranch stage, int index, bool splits,
                  const StagePrice* like);
  // Returns whether the times, except for messages, are known to be equal for the stage and the
  // next one.
  bool alike(const LayoutView& view, StageOfBranch stage, int index, int next) const;
  LayerTimes times(const LayoutView& view, StageOfBranch stage, bool splits);
  const Scenario& scenario() const { return scenario_; }
  Seconds update_time(Bytes updated) const;
  LeastTimes& rings() { return rings_; }
  const LeastTimes& rings() const { return rings_; }

 private:
  // By position; for a module with measured times by layer, kept and recomputed.
  using Times = std::vector<LayerTimes>;
  bool measured(ModuleId module) const {
    return profile_.layer_times.contains(layers_.module(module).name);
  }
  const Times& layer_times_of(const LayoutView& view, std::size_t branch, ModuleId module,
                              bool splits);
  // Returns the times of one layer, which is at the given position.
  LayerTimes time_layer(const BranchLoad& load, ModuleId module, LayerRange layer,
                        std::size_t position, const LayerCut& cut, const InnerRings& rings,
                        bool splits) const;
  // Times for a chunk's parameters.
  struct ChunkCost {
    Seconds reduction{}, scatter{}, gathers{}, overlapped{};
    Bytes updated{};
  };
  ChunkCost chunk_cost(const LayoutView& view, StageOfBranch stage, const ModuleLayout& layout,
                       const ChunkElements& sums, int first);
  void add_message(const LayoutView& view, StageOfBranch stage, StagePrice& cost) const;
  void add_parameters(const LayoutView& view, StageOfBranch stage, int index, StagePrice& cost);
  bool follows(const LayerRun& before, const LayerRun& after) const;

  // Tables for the current view, by module, looked up once.
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
  MemoTable<Times> times_;
  std::vector<Found> found_;
  Key key_;
};

}  // namespace polyphony
