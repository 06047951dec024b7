// StepCosts in flat arrays, for planners that place a step's actions thousands of times.
// Microbatches are numbered in the order in which links carry them; times are seconds.
//   A node is a (stage, place of the microbatch in the order).
//   The mirror of a step is its reversal in time: a stage's backward becomes its forward, and
//   microbatches come in reverse order. Both are StageGraphs.
//   If backwards are split, the backward is the input part, and a weight part runs some time after
//   it (before it in the mirror). The weight parts of a stage run in the order of its microbatches.
//   Stages without trainable weights have no weight parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

// Directions, used as array indices.
inline constexpr int kForward = 0, kBackward = 1, kWeight = 2;

class StageGraph {
 public:
  struct Stage {
    int rank = 0;
    std::size_t branch = 0, first = 0;            // first: index of its first node
    int stage = 0;                                // stage of the branch
    int works = 0;                                // number of microbatches of the branch
    std::array<bool, 3> runs{true, true, false};  // by direction
    int takes = kForward, gives = kBackward;      // memory: start of takes to end of gives
    std::vector<int> from{};                      // stages that send to it in forward direction
    int to = -1;                                  // stage that it sends to; -1: none
  };
  // `order`: microbatches, first to last. `apart`: backwards are split into two parts.
  StageGraph(const StepCosts& costs, const std::vector<int>& order, bool apart = false);

  StageGraph mirrored() const;

  // The places of microbatch k (of the order) among the microbatches of a branch: [begin, end).
  int begin(std::size_t branch, int k) const { return first_place[branch][std::size_t(k)]; }
  int end(std::size_t branch, int k) const { return first_place[branch][std::size_t(k) + 1]; }
  Action action(int direction, int stage, int place) const;

  int ranks = 0, microbatches = 0, receive_slots = 0;
  std::size_t actions = 0;  // of all ranks
  bool apart = false;
  std::vector<Stage> stages;
  std::vector<std::vector<int>> on_rank;        // stages, by rank
  std::array<std::vector<double>, 3> seconds;   // by direction, node
  std::vector<double> message;                  // by node: to the next stage, and back
  std::vector<std::int64_t> kept;               // bytes of saved activations, by node
  std::vector<int> microbatch;                  // by node: place in the order
  std::vector<std::vector<int>> first_place;    // by branch, microbatch
  std::vector<std::vector<int>> work_at;        // by branch, place
  std::vector<std::vector<std::int64_t>> full;  // bytes saved, by rank, microbatch
  std::vector<std::vector<int>> actions_of;     // number of actions, by rank, microbatch
  std::vector<std::vector<int>> keeps_of;       // nodes that save bytes, by rank, microbatch
  std::vector<std::int64_t> capacity;           // bytes, by rank
  bool limited = false;                         // true if any rank has a limited capacity
};

// Returns the microbatches in their given order: 0, 1, 2, …
std::vector<int> microbatches_in_order(const StepCosts& costs);

}  // namespace polyphony
