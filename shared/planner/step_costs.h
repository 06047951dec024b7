// What a planner of orders knows of a step: how long every stage takes for every work, what it
// keeps, which rank it stands on. Numbers alone: no scenario, no Program.
//   A branch is a module's pipeline (Plan::branches), cut into stages in the order of the data; its
//   works are microbatches, or parts of them (sub-microbatches). Works of a microbatch are joined:
//   one of a fed branch needs all of its microbatch of the branches that feed it.
//   Between stages on two ranks goes a message; a link carries works in one order, and so every
//   stage takes microbatches in one order, the same in both directions (Program: streams).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/units.h"

namespace polyphony {

// Of one stage and work.
struct StageCost {
  Seconds forward{}, input{}, weight{};  // a whole backward lasts input + weight
  Bytes kept{};                          // from the forward's start to the backward's end
  Seconds message{};  // to the next stage, and of its gradient back, where ranks differ
  Bytes moved{};      // kept besides, to go to the host and back where the order has room
  Seconds copy{};     // of them, either way (shared/planner/host_copies.h)
  bool operator==(const StageCost&) const = default;
};
struct BranchCosts {
  std::string name;
  std::vector<int> rank_of_stage;
  std::vector<int> microbatch_of;      // by work, ascending
  std::vector<StageCost> costs;        // [stage][work]
  std::optional<std::size_t> feeds{};  // a later branch, whose first stage its last one feeds
  bool learns = true;                  // false: forwards alone, nothing is kept
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
  std::vector<BranchCosts> branches;  // the last one feeds nothing
  std::vector<Bytes> capacity{};      // by rank; empty: as much as is asked for
  int receive_slots = 2;              // StepPlan::receive_slots
  bool operator==(const StepCosts&) const = default;
};

}  // namespace polyphony
