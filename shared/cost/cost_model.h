// The cost model: computes the cost table of a compiled Program on a cluster with a hardware
// profile.
//   compute, update  shared/cost/compute_time.h
//   message          delay = message latency + link latency, then one flow; inside one rank, the
//                    time of a copy
//   collective       delay = latency of the library's fastest protocol (shared/cost/collectives.h;
//                    Gloo: hops · (collective latency + link latency)), then one flow per ring
//                    edge, or one per NIC between nodes if leaf switches are stated
//   host copy        delay = host latency + latency of the host link, then one flow
//
// Rates come from the cluster's links and the profile's device; efficiencies and protocol costs
// come from the profile. The bytes of a flow are divided by the efficiency of its link, so that
// estimate() and simulate() use the same bytes. Compute ops that share a node of the graph last as
// long as the longest of them.
//
// Compute is slowed down by collectives that overlap with it (shared/hardware/software.h:
// taken_inside, taken_between), and by a degraded device (Cluster::degraded) in its group.
// Reduction in the switch: shared/cost/collective_algorithms.h.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/cost/compute_time.h"
#include "shared/cost/cost.h"
#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// Returns the cost table.
// Ring collectives of S bytes over n ranks: all-reduce moves 2(n−1)/n·S per edge, over a ring
// after 2(n−1)·latency; all-gather, reduce-scatter and all-to-all (each rank sends S/n to each
// other rank) take half of both. Source: nccl-tests doc/PERFORMANCE.md (bandwidth term).
CostTable price(const Program& program, const Compiled& compiled, const Cluster& cluster,
                const HardwareProfile& profile);

// Prices one Program by several profiles that differ in rates and efficiencies alone, which is
// faster: which compute ops are alike is found once. The arguments must outlive it.
class Pricing {
 public:
  Pricing(const Program& program, const Compiled& compiled, const Cluster& cluster)
      : program_(program), compiled_(compiled), cluster_(cluster) {}
  // Returns price(program, compiled, cluster, profile).
  CostTable price(const HardwareProfile& profile);

 private:
  const Program& program_;
  const Compiled& compiled_;
  const Cluster& cluster_;
  std::vector<std::uint32_t> kinds_;  // of compute ops, by op; empty before the first pricing
};

// Converts the size of gradients from the executor's number format to the format in which the stack
// reduces them.
Bytes reduced_bytes(const HardwareProfile& profile, NumberFormat precision, Bytes gradients);

}  // namespace polyphony
