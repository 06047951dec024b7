// Walks a compiled Program inside SimGrid's event loop. No actors and no SimGrid dependencies:
// every node counts its unfinished predecessors, and the last one to finish starts it. Fixed times
// are kernel timers, transfers are host-to-host Comms.
//   1F1B of 16 stages, 64 lanes, 64 microbatches (196,454 timers, 124,928 transfers): 0.6 s of one
//   Xeon core, 186 MB.
// Runs once per process, inside run_in_child().
#pragma once

#include <deque>
#include <simgrid/s4u/Comm.hpp>
#include <vector>

#include "shared/compile.h"
#include "shared/cost.h"
#include "sim/platform.h"

namespace polyphony::sim {

class Player {
 public:
  Player(const Compiled& compiled, const CostTable& costs, const Platform& platform);

  // Until every node has ended. InternalError when SimGrid stops before.
  void run();

  Seconds start(std::uint32_t node) const { return Seconds(start_[node]); }
  Seconds end(std::uint32_t node) const { return Seconds(end_[node]); }
  std::uint64_t flows() const { return flows_; }
  // Bytes of ended transfers that left each rank, inside its node and over the fabric.
  const std::vector<Bytes>& sent_on_node() const { return sent_on_node_; }
  const std::vector<Bytes>& sent_on_fabric() const { return sent_on_fabric_; }

 private:
  struct Transfer {
    simgrid::s4u::CommPtr comm;
    std::uint32_t node = 0;
    std::uint32_t flow = 0;
  };

  void begin(std::uint32_t node);
  void launch_flows(std::uint32_t node);
  Transfer& new_transfer();
  void release_parked(double now);
  void flow_ended(Transfer& transfer);
  void finish(std::uint32_t node);
  void drain();

  const Compiled& compiled_;
  const CostTable& costs_;
  const Platform& platform_;
  std::vector<double> start_, end_;       // seconds, by node
  std::vector<std::uint32_t> waiting_;    // by node: predecessors not yet ended
  std::vector<std::uint32_t> in_flight_;  // by node: flows not yet ended
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
