// The cost model: prices a compiled Program on a cluster with a hardware profile.
//   compute     overhead + the longer of Σ kernels · correction and the host's launches, + Σ inner
//   collectives in closed form
//   update      overhead + bytes of parameters, gradients and moments read and written ÷ memory
//   rate message     delay = message latency + link latency, then one flow; on one rank: the time
//   of a copy collective  delay = hops · (collective latency + link latency), then one flow per
//   ring edge
// Rates come from the cluster's links and the profile's device; efficiencies and protocol costs
// from the profile. A flow's bytes are divided by the efficiency of its link, so that estimate()
// and simulate() see the same work. Compute is slowed by what runs beside it as the stack says
// (shared/cost/software.h: taken_inside, taken_between), and by a degraded device
// (Cluster::degraded) of any of its group. Ignores: in-switch reduction.
#pragma once

#include "shared/cost/collectives.h"
#include "shared/cost/cost.h"
#include "shared/cost/hardware.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// Ring collectives over n ranks of S bytes: all-reduce 2(n−1)/n·S per edge after 2(n−1)·latency;
// all-gather, reduce-scatter and (each rank sending S/n to each) all-to-all half. Source:
// nccl-tests doc/PERFORMANCE.md (bandwidth term).
CostTable price(const Program& program, const Compiled& compiled, const Cluster& cluster,
                const HardwareProfile& profile);

// Seconds of one compute op: kernels, dispatch, inner collectives.
Seconds compute_time(const Program& program, OpId op, const Cluster& cluster,
                     const HardwareProfile& profile);

// Of the groups that a chunk's layers use.
struct InnerRings {
  Ring tensor, context, expert;
};

// Kernels and inner collectives of a layer range on one rank, without the overhead of an op. Equal
// layers are priced once.
Seconds range_time(const Module& module, LayerRange range, Phase phase, const WorkSize& size,
                   const ChunkContext& context, const InnerRings& rings,
                   const HardwareProfile& profile);

// Of gradients in the executor's format, in the format that the stack reduces them in.
Bytes reduced_bytes(const HardwareProfile& profile, NumberFormat precision, Bytes gradients);

// Bytes that an AdamW update moves per parameter: weight read and written, gradient read, two
// moments read and written; one pass over the gradient for its norm, one to zero it. 16-bit formats
// and smaller: fp32 master weight, gradient and moments, and the weight written once more. What is
// held: shared/plan/sizes.h. Own count; AdamW: Loshchilov and Hutter, arXiv 1711.05101.
Bytes update_bytes(NumberFormat precision);

}  // namespace polyphony
