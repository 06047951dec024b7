// What a planner knows of a step: how long every stage takes for every microbatch, how many bytes
// of activations it saves, and on which rank it is. Plain numbers, without a scenario or a Program.
//   A branch is a module's pipeline (Plan::branches), cut into stages in the order of the data
//   flow. The microbatches of a branch ("works" in the code) are the step's microbatches or parts
//   of them (sub-microbatches). A work of a branch that is fed by others needs all works of its
//   microbatch of those branches.
//   A message connects stages on different ranks. A link carries microbatches in one order, so
//   every stage takes them in one order, the same in both directions (Program: streams).
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "shared/units.h"

namespace polyphony {

// Moment of what has no moment yet, in seconds.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

// Costs of one stage and one microbatch of its branch.
struct StageCost {
  Seconds forward{}, input{}, weight{};  // a whole backward lasts input + weight
  Bytes kept{};                          // from the forward's start to the backward's end
  Seconds message{};  // to the next stage, and of its gradient back, if the ranks differ
  Bytes moved{};      // saved in addition to `kept`; offloaded to the host where the order has room
  Seconds copy{};     // of `moved`, in either direction (shared/planner/host_copies.h)
  bool operator==(const StageCost&) const = default;
};
struct BranchCosts {
  std::string name;
  std::vector<int> rank_of_stage;
  std::vector<int> microbatch_of;      // by work, ascending
  std::vector<StageCost> costs;        // [stage][work]
  std::optional<std::size_t> feeds{};  // a later branch, whose first stage the last stage feeds
  bool learns = true;                  // false: forwards only, no activations are saved
  int stages() const { return static_cast<int>(rank_of_stage.size()); }
  int works() const { return static_cast<int>(microbatch_of.size()); }
  const StageCost& cost(int stage, int work) const {
    return costs[static_cast<std::size_t>(stage) * microbatch_of.size() +
                 static_cast<std::size_t>(work)];
  }
  bool operator==(const BranchCosts&) const = default;
};
struct StepCosts {
  int ranks = 1, microbatches = 1;
  std::vector<BranchCosts> branches;  // the last one feeds no other
  std::vector<Bytes> capacity{};      // memory for saved activations, by rank; empty: unlimited
  int receive_slots = 2;              // StepPlan::receive_slots
  bool operator==(const StepCosts&) const = default;
};

}  // namespace polyphony
