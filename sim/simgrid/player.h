// Executes a compiled Program inside SimGrid's event loop. Runs once per process, in
// polyphony-simulate.
//
// It uses neither SimGrid's actors nor its dependencies: every node counts its unfinished
// predecessors, and the last predecessor to finish starts it. Transfers are host-to-host Comms.
// Fixed durations wait in a queue of our own; SimGrid sees one kernel timer, for the earliest of
// them. Durations that end at the same date end in the order in which they began.
//
// Speed: scripts/bench_simulator (1F1B with 16 stages, 64 data-parallel replicas, 64 microbatches).
#pragma once

#include <deque>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u/Comm.hpp>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/graph/compile.h"
#include "sim/simgrid/platform.h"

namespace polyphony::sim {

class Player {
 public:
  Player(const Compiled& compiled, const CostTable& costs, const Platform& platform);

  // Runs until every node has ended. Throws InternalError if SimGrid stops earlier.
  void run();

  Seconds start(std::uint32_t node) const { return Seconds(nodes_[node].start); }
  Seconds end(std::uint32_t node) const { return Seconds(nodes_[node].end); }
  std::uint64_t flows() const { return flows_; }
  // Bytes sent by each rank in finished transfers, inside its node and over the fabric.
  const std::vector<Bytes>& sent_on_node() const { return sent_on_node_; }
  const std::vector<Bytes>& sent_on_fabric() const { return sent_on_fabric_; }

 private:
  // All data of a node that an event needs, kept in one place for the cache: nodes end in another
  // order than they are stored.
  struct State {
    double start = 0, end = 0;    // seconds
    double fixed = 0;             // seconds before its flows start
    Range flows;                  // positions in CostTable::flows
    Range successors;             // positions in Compiled::successors
    std::uint32_t waiting = 0;    // predecessors not yet ended
    std::uint32_t in_flight = 0;  // flows not yet ended
  };
  // The end of a fixed duration.
  struct Event {
    double date;
    std::uint32_t action;  // number of events queued before this one
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
  std::deque<Transfer> transfers_;  // the most that were in flight at once; addresses are stable
  std::vector<Transfer*> idle_, parked_;
  double parked_at_ = 0;
  std::vector<std::uint32_t> ended_;  // ended nodes whose successors are not yet notified
  bool draining_ = false;
  std::uint32_t left_ = 0;
  std::uint64_t flows_ = 0;
  std::vector<Bytes> sent_on_node_, sent_on_fabric_;
};

}  // namespace polyphony::sim
