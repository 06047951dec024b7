// StepCosts laid out flat, for planners that place a step's actions thousands of times: microbatches
// stand in the order in which links carry them, times are seconds.
//   A node is (stage, place of the work in the order). A step and its mirror are the same graph: run
//   backwards in time, a stage's backward is its forward, and microbatches come in reverse.
//   Where backwards run in two parts, the backward is the input part, and a weight part follows it some
//   time, in the mirror precedes it; those of a stage run in the order of its works. Stages without
//   weights to learn have none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

class StageGraph {
 public:
  // By direction.
  static constexpr int kForward = 0, kBackward = 1, kWeight = 2;

  struct Stage {
    int rank = 0;
    std::size_t branch = 0, first = 0;  // first: of its nodes
    int stage = 0;                      // of the branch
    int works = 0;
    std::array<bool, 3> runs{true, true, false};  // by direction
    int takes = kForward, gives = kBackward;      // memory: from the one's start to the other's end
    std::vector<int> from{};                      // stages that send it forwards
    int to = -1;                                  // the one that it sends to
  };
  // `order`: microbatches, first to last. `apart`: backwards run in two parts.
  StageGraph(const StepCosts& costs, const std::vector<int>& order, bool apart = false);

  StageGraph mirrored() const;

  // Places of microbatch k (in the order) among the works of a branch: [begin, end).
  int begin(std::size_t branch, int k) const { return first_place[branch][std::size_t(k)]; }
  int end(std::size_t branch, int k) const { return first_place[branch][std::size_t(k) + 1]; }
  Action action(int direction, int stage, int place) const;

  int ranks = 0, microbatches = 0, receive_slots = 0;
  std::size_t actions = 0;  // of all ranks
  bool apart = false;
  std::vector<Stage> stages;
  std::vector<std::vector<int>> on_rank;        // stages
  std::array<std::vector<double>, 3> seconds;   // by direction, node
  std::vector<double> message;                  // by node: to the next stage, and back
  std::vector<std::int64_t> kept;               // by node
  std::vector<int> microbatch;                  // by node: place in the order
  std::vector<std::vector<int>> first_place;    // by branch, microbatch
  std::vector<std::vector<int>> work_at;        // by branch, place
  std::vector<std::vector<std::int64_t>> full;  // by rank, microbatch: all that it keeps there
  std::vector<std::vector<int>> actions_of;     // by rank, microbatch
  std::vector<std::vector<int>> keeps_of;       // by rank, microbatch: nodes that keep something
  std::vector<std::int64_t> capacity;           // by rank
  bool limited = false;                         // whether any capacity is
};

// 0, 1, 2, …
std::vector<int> microbatches_in_action(const StepCosts& costs);

}  // namespace polyphony
