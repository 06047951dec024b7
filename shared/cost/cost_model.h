// The cost model: prices a compiled Program on a cluster with a hardware profile.
//   compute, update: shared/cost/compute_time.h
//   message: delay = message latency + link latency, then one flow; on one rank, time of a copy
//   collective: delay = hops · (collective latency + link latency), then one flow per ring edge
//
// Rates come from the cluster's links and the profile's device; efficiencies and protocol costs
// from the profile. A flow's bytes are divided by the efficiency of its link, so that estimate()
// and simulate() see the same work. Compute ops that run together (one node of the graph) last as
// long as the one with most to do. Compute is slowed by what runs beside it as the stack says
// (shared/hardware/software.h: taken_inside, taken_between), and by a degraded device
// (Cluster::degraded) of any of its group. Ignores: in-switch reduction.
#pragma once

#include "shared/cost/compute_time.h"
#include "shared/cost/cost.h"
#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// Ring collectives over n ranks of S bytes: all-reduce 2(n−1)/n·S per edge after 2(n−1)·latency;
// all-gather, reduce-scatter and (each rank sending S/n to each) all-to-all half. Source:
// nccl-tests doc/PERFORMANCE.md (bandwidth term).
CostTable price(const Program& program, const Compiled& compiled, const Cluster& cluster,
                const HardwareProfile& profile);

// Of gradients in the executor's format, in the format that the stack reduces them in.
Bytes reduced_bytes(const HardwareProfile& profile, NumberFormat precision, Bytes gradients);

}  // namespace polyphony
