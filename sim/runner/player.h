// Walks a compiled Program inside SimGrid's event loop. No actors and no SimGrid dependencies:
// every node counts its unfinished predecessors, and the last one to finish starts it. Transfers
// are host-to-host Comms. Fixed times wait in a queue of our own, of which SimGrid sees one kernel
// timer, for the earliest; those of one date end in the order in which they began.
//   1F1B of 16 stages, 64 lanes, 64 microbatches: scripts/bench_simulator.
// Runs once per process, inside run_in_child().
#pragma once

#include <deque>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u/Comm.hpp>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/graph/compile.h"
#include "sim/runner/platform.h"

namespace polyphony::sim {

class Player {
 public:
  Player(const Compiled& compiled, const CostTable& costs, const Platform& platform);

  // Until every node has ended. InternalError when SimGrid stops before.
  void run();

  Seconds start(std::uint32_t node) const { return Seconds(nodes_[node].start); }
  Seconds end(std::uint32_t node) const { return Seconds(nodes_[node].end); }
  std::uint64_t flows() const { return flows_; }
  // Bytes of ended transfers that left each rank, inside its node and over the fabric.
  const std::vector<Bytes>& sent_on_node() const { return sent_on_node_; }
  const std::vector<Bytes>& sent_on_fabric() const { return sent_on_fabric_; }

 private:
  // All that an event needs of a node, close together: nodes end in another order than they stand.
  struct State {
    double start = 0, end = 0;    // seconds
    double fixed = 0;             // before its flows
    Range flows;                  // positions in CostTable::flows
    Range successors;             // positions in Compiled::successors
    std::uint32_t waiting = 0;    // predecessors not yet ended
    std::uint32_t in_flight = 0;  // flows not yet ended
  };
  // The end of a fixed time.
  struct Event {
    double date;
    std::uint32_t action;  // how many were queued before
    std::uint32_t node;
    bool operator<(const Event& other) const {  // std heaps have the largest on top
      return date != other.date ? date > other.date : action > other.action;
    }
  };
  struct Transfer {
    simgrid::s4u::CommPtr comm;
    std::uint32_t node = 0;
    std::uint32_t flow = 0;
  };

  void begin(std::uint32_t node);
  void set_alarm();
  void wake();
  void launch_flows(std::uint32_t node);
  Transfer& new_transfer();
  void release_parked();
  void flow_ended(Transfer& transfer);
  void finish(std::uint32_t node);
  void drain();

  const Compiled& compiled_;
  const CostTable& costs_;
  const Platform& platform_;
  std::vector<State> nodes_;
  double now_ = 0;
  std::vector<Event> queue_;  // a heap
  std::uint32_t actions_ = 0;
  simgrid::kernel::timer::Timer* alarm_ = nullptr;  // for the earliest event
  std::deque<Transfer> transfers_;  // as many as were ever in flight together; they never move
  std::vector<Transfer*> idle_, parked_;
  double parked_at_ = 0;
  std::vector<std::uint32_t> ended_;  // nodes whose successors are not yet told
  bool draining_ = false;
  std::uint32_t left_ = 0;
  std::uint64_t flows_ = 0;
  std::vector<Bytes> sent_on_node_, sent_on_fabric_;
};

}  // namespace polyphony::sim
