// The dual-queue list scheduler: places the forwards and backwards of a step on its ranks, one action
// after another, always on the rank that can start one the earliest.
//   Each rank has two queues, of forwards and of backwards whose inputs have come or will come at a
//   known time. Where both have one by the time that the rank is free, it alternates: not the kind
//   that ran last, a forward at the start. Otherwise the kind that can start earlier.
//     rank       the earliest start; of equal ones the lowest rank
//     in a queue the lowest key; of equal ones the earlier input, then the lower stage
//   Weight parts, where backwards run in two parts, fill: one runs where it ends before anything else
//   could start, and, unless the two queues alternate, where its key is lower. It may be waited for.
//   A forward is put off while what it keeps would leave some earlier microbatch too little of the
//   rank's capacity to end: for each unfinished one i before it,
//     Σ held by later ones than i + what the forward keeps + what i will hold at most ≤ capacity,
//   where i will hold all that it keeps, as its backwards cannot run before all of its forwards have,
//   and once these have run what it holds. That is necessary, and sufficient: the first unfinished
//   microbatch can always go on. Nothing is refused that could end, and nothing deadlocks.
//   What an action waits for is what its ops wait for in the Program, so that its end is the
//   estimate's: the rank, its stage's inputs; a message begins when its sender is done, the link's
//   last message has come, and the receiving stage's action that many slots before has ended.
//   O(actions · (ranks + stages of a rank)).
// Source: Wang et al., DIP, ASPLOS 2026 (arXiv 2504.14145v2) §5.2: queues and alternation; ties,
// keys and the rule of memory are ours.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "shared/error.h"
#include "shared/planner/stage_graph.h"

namespace polyphony {

// Which of several actions goes first.
struct Keys {
  std::array<std::vector<double>, 3> of;  // by direction, node; the lowest goes first
  bool alternate = true;                  // false: forwards and backwards are one queue
};
// Earlier microbatches first, of one the stage that is furthest along; weight parts last.
Keys keys_in_turn(const StageGraph& graph);

struct Placed {
  std::uint8_t direction = 0;
  std::uint16_t stage = 0;  // of the graph
  std::int32_t place = 0;
};
struct ListSchedule {
  std::array<std::vector<double>, 3> start;  // by direction, node
  std::vector<std::vector<Placed>> orders;   // by rank
  double makespan = 0;
};

// Why no order of any kind fits a rank's memory: a microbatch alone keeps more. Empty: one does.
std::string too_large(const StepCosts& costs);

// Its arrays are used again from run to run.
class ListScheduler {
 public:
  explicit ListScheduler(const StageGraph& graph);
  // False: it would take `give_up` or longer. Needs memory for each microbatch alone.
  bool run(const Keys& keys, ListSchedule& result,
           double give_up = std::numeric_limits<double>::infinity());
  // Every rank's actions in an order of its own: when they run. False as well: they wait for each
  // other. Capacities are not looked at.
  bool follow(const std::vector<std::vector<Placed>>& orders, ListSchedule& result,
              double give_up = std::numeric_limits<double>::infinity());

 private:
  bool place_all(ListSchedule& result, double give_up);
  void refresh(int direction, int stage);
  double arrive(int direction, int stage, std::size_t link, int sender, int place);
  bool admits(int rank, std::size_t node) const;
  struct Best {  // of a queue
    double start = std::numeric_limits<double>::infinity(), key = start, ready = start;
    int stage = -1;
  };
  Best best_of(int direction, int rank) const;
  int choose(int rank, const std::array<Best, 3>& best) const;
  void look(int rank);
  void place(int rank, ListSchedule& result);

  struct Queue {  // one direction of a stage: the work that is next
    int next = 0;
    double ready = 0;  // infinite: not known yet
  };
  struct RankState {
    double free = 0;
    int last = StageGraph::kBackward;  // direction of its last action but for weight parts
    int lead = 0, top = 0;             // microbatches: first unfinished, last begun
    std::vector<std::int64_t> held{};  // by microbatch
    std::vector<int> left{};           // actions, by microbatch
    std::vector<int> takes{};          // those of them that take memory
    double start = 0;                  // of what it would run next; infinite: nothing
    int direction = 0, stage = 0;      // of that
    std::size_t placed = 0;
  };
  const StageGraph& graph_;
  const Keys* keys_ = nullptr;
  const std::vector<std::vector<Placed>>* orders_ = nullptr;  // to follow; none: keys say
  std::array<std::vector<Queue>, 3> queues_;
  std::array<std::vector<double>, 3> end_;                   // by direction, node
  std::array<std::vector<std::vector<double>>, 2> arrived_;  // by receiving stage, link: the last
  std::array<std::vector<std::vector<double>>, 2> coming_;   // and the next one's
  std::vector<RankState> ranks_;
};

}  // namespace polyphony
