// What layers, microbatches and their activations cost: the seconds and bytes by which stages are
// split and planners decide. They come from a profile, or are stated next to a layout; a Layout and
// a Program hold none of them.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "shared/ids.h"
#include "shared/schedule/action.h"
#include "shared/units.h"

namespace polyphony {

// Cost of a layer to the stage that holds it, for one microbatch on one rank
// (shared/cost/layer_costs.h).
struct LayerCost {
  Seconds forward{}, backward{};
  Bytes sent{};  // to the next stage, if the layer is the last of its stage
  Seconds total() const { return forward + backward; }
  bool operator==(const LayerCost&) const = default;
};
// Indexed by ModuleId, then by position in the module's layer stack.
using LayerCosts = std::vector<std::vector<LayerCost>>;

// Forward and backward seconds of one microbatch on one rank of its module's pipeline, summed over
// all stages: square·Σx² + linear·Σx + constant, where x is the token count of each item (encoders)
// or of each sample (language).
struct ItemCost {
  double square = 0, linear = 0, constant = 0;
  bool operator==(const ItemCost&) const = default;
};

// A quantity as a function of one microbatch: square · (query, key) pairs that attend + linear ·
// tokens + constant. 0 for a microbatch without tokens.
struct WorkCurve {
  double square = 0, linear = 0, constant = 0;
  bool operator==(const WorkCurve&) const = default;
};
// Costs of one microbatch on each rank of a stage.
//   forward, input, weight  seconds of the forward, and of the input and weight parts of the
//                           backward
//   message                 seconds of the message to the next stage
//   kept                    bytes of saved activations between forward and backward
//   held                    bytes kept from the input part of the backward to the weight part
//   moved                   bytes, out of those kept, that are offloaded to the host and back
//   copy                    seconds of the copy to the host, and of the copy back
struct StageCurves {
  WorkCurve forward, input, weight, message, kept, held, moved{}, copy{};
  bool operator==(const StageCurves&) const = default;
};
// The costs by which planner dip orders the actions of a branch (shared/step/searched_step.h).
struct StageCosts {
  struct Way {  // the costs under one recipe
    Recipe recipe = Recipe::none;
    std::vector<StageCurves> stages;
    bool operator==(const Way&) const = default;
  };
  std::vector<Way> ways;  // least recomputation first
  std::vector<double>
      room;  // memory limit of saved activations (bytes), by pipeline rank; empty: none
  bool operator==(const StageCosts&) const = default;
};

// The costs of one module for planners. Absent ones are computed from the hardware profile.
struct ModuleCosts {
  std::optional<ItemCost> item{};      // key item_cost: planner entrain
  std::optional<StageCosts> stages{};  // key stage_costs: planner dip
  bool operator==(const ModuleCosts&) const = default;
};
// The costs that are stated next to a layout. Modules without any have no entry; those of a
// homogeneous layout are the last module's, as its list of blocks is.
using PlannerCosts = std::map<ModuleId, ModuleCosts>;

// Returns the module's costs; absent ones if it has no entry.
inline ModuleCosts costs_of(const PlannerCosts& costs, ModuleId module) {
  const auto found = costs.find(module);
  return found == costs.end() ? ModuleCosts{} : found->second;
}

}  // namespace polyphony
