// The dual-queue list scheduler places the forwards and backwards of a step on its ranks, one
// action at a time, always on the rank that can start an action earliest.
//
// Choice of the next action:
//   Each rank has two queues: forwards, and backwards, whose inputs have arrived or will arrive at
//   a known time. If both have an action ready when the rank becomes free, it alternates: the kind
//   that did not run last, a forward at the start. Otherwise it runs the kind that can start
//   earlier.
//     between ranks      the earliest start; ties: the lowest rank
//     within a queue     the lowest key; ties: the earlier input, then the lower stage
//   If backwards are split, a weight part runs where it ends before anything else could start and,
//   unless the queues alternate, also where its key is lower. The rank may wait for it to end.
//
// Memory: a forward is delayed while the activations it saves would leave an earlier microbatch too
// little capacity to finish. For each unfinished microbatch i before it:
//     Σ held by later microbatches than i + saved by the forward + most that i will hold ≤ capacity
//   where "most that i will hold" is everything it saves, since its backwards cannot run before all
//   of its forwards have, and, once these have run, what it holds now. This is necessary and
//   sufficient: the first unfinished microbatch can always continue, so there is no deadlock, and
//   no order that could finish is rejected.
//
// Timing: an action waits for what its ops wait for in the Program, so that its end equals the
// estimate's: for the rank, and for its stage's inputs. A message starts when its sender is done,
// the previous message of the link has arrived, and the receiving stage's action receive_slots
// before it has ended.
//   Time complexity: O(actions · (ranks + stages of a rank)).
//
// Source: Wang et al., DIP, ASPLOS 2026 (arXiv 2504.14145v2) §5.2 for queues and alternation; the
// tie rules, keys and the memory rule are our own.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "shared/error.h"
#include "shared/planner/stage_graph.h"

namespace polyphony {

// Priorities: which of several actions goes first.
struct Keys {
  std::array<std::vector<double>, 3> of;  // by direction, node; the lowest key goes first
  bool alternate = true;                  // false: forwards and backwards share one queue
};
// Returns keys for: earlier microbatches first, within one the stage that is furthest along; weight
// parts last.
Keys keys_in_turn(const StageGraph& graph);

struct Placed {
  std::uint8_t direction = 0;
  std::uint16_t stage = 0;  // stage of the StageGraph
  std::int32_t place = 0;
};
struct ListSchedule {
  std::array<std::vector<double>, 3> start;  // by direction, node
  std::vector<std::vector<Placed>> orders;   // by rank
  double makespan = 0;
};

// Returns why no order fits a rank's memory: a single microbatch exceeds it. Empty if all fit.
std::string too_large(const StepCosts& costs);

// Its arrays are reused between runs.
class ListScheduler {
 public:
  explicit ListScheduler(const StageGraph& graph);
  // Places all actions by `keys`. Returns false if the makespan would be `give_up` or longer. Every
  // single microbatch must fit in memory (too_large()).
  bool run(const Keys& keys, ListSchedule& result, double give_up = kNever);
  // Computes when the actions of given orders run. Returns false as above, and if actions wait for
  // each other in a cycle. Capacities are not checked.
  bool follow(const std::vector<std::vector<Placed>>& orders, ListSchedule& result,
              double give_up = kNever);

 private:
  bool place_all(ListSchedule& result, double give_up);
  void refresh(int direction, int stage);
  double arrive(int direction, int stage, std::size_t link, int sender, int place);
  bool admits(int rank, std::size_t node) const;
  struct Best {  // best action of a queue
    double start = kNever, key = start, ready = start;
    int stage = -1;
  };
  Best best_of(int direction, int rank) const;
  int choose(int rank, const std::array<Best, 3>& best) const;
  void look(int rank);
  void place(int rank, ListSchedule& result);

  struct Queue {  // one direction of a stage: its next microbatch
    int next = 0;
    double ready = 0;  // infinite: not yet known
  };
  struct RankState {
    double free = 0;
    int last = kBackward;              // direction of its last action, weight parts excluded
    int lead = 0, top = 0;             // microbatches: first unfinished, last started
    std::vector<std::int64_t> held{};  // bytes, by microbatch
    std::vector<int> left{};           // actions left, by microbatch
    std::vector<int> takes{};          // actions left that allocate memory, by microbatch
    double start = 0;                  // start of the next action; infinite: none is ready
    int direction = 0, stage = 0;      // of the next action
    std::size_t placed = 0;
  };
  const StageGraph& graph_;
  const Keys* keys_ = nullptr;
  const std::vector<std::vector<Placed>>* orders_ = nullptr;  // orders to follow; null: use keys_
  std::array<std::vector<Queue>, 3> queues_;
  std::array<std::vector<double>, 3> end_;  // by direction, node
  // By receiving stage and link: arrival of the last message, and of the next one.
  std::array<std::vector<std::vector<double>>, 2> arrived_;
  std::array<std::vector<std::vector<double>>, 2> coming_;
  std::vector<RankState> ranks_;
};

}  // namespace polyphony
