// What a group of ranks offers a collective, and what one costs there.
//   n ranks on k nodes, S bytes, R rate of the slowest ring edge, efficiency included.
//   ring            hops = n − 1 (all-reduce 2(n − 1)), bytes over each edge = hops/n · S
//   ring edge       inside a node the node link; between nodes each of the n/k ranks of a node
//   leads
//                   a ring of its own through its own NIC: n/k NICs together (NCCL's channels)
//   all-to-all      each rank sends S/n to each other; what leaves the node takes the rank's own
//   NIC time            latency + bytes / (R · share) without NCCL    latency = hops · (collective
//   latency + link latency), share 1 with NCCL       the fastest protocol: base + hops inside · a +
//   hops between nodes · b, share of
//                   the rate: LL 6.6 us, 0.6, 2.7, 1/2 (half of each 8 bytes is a flag); LL128 14,
//                   1.9, 4.0, 0.92 (120 of 128 bytes); Simple 8.4, 3.4, 14, 1. Trees for
//                   all-reduce: 2 log2 k hops between nodes, 6.8/14/8.4, 0.6/1.25/4 and 5/8.5/14
//                   us, 0.92 of the share.
// Sources: nccl-tests doc/PERFORMANCE.md (bandwidth terms); NCCL src/graph/tuning.cc (protocols).
// Does not model: NVLS, PAT, channels short of the link's rate.
#pragma once

#include <vector>

#include "shared/cluster.h"
#include "shared/hardware.h"
#include "shared/program.h"

namespace polyphony {

// One rank: nothing to do.
struct Ring {
  int ranks = 1;
  int nodes = 1;
  BytesPerSecond rate{};      // of a ring
  BytesPerSecond exchange{};  // of an all-to-all
  Seconds hop{};              // without NCCL
  bool nccl = false;
};
Ring make_ring(const std::vector<Rank>& members, const Cluster& cluster,
               const HardwareProfile& profile);
int ring_hops(CollectiveKind kind, int ranks);
Bytes ring_bytes(CollectiveKind kind, int ranks, Bytes bytes);  // over each edge

// How a collective of some size is run: latency + bytes / (rate · share).
struct Protocol {
  Seconds latency{};
  double share = 1;
};
Protocol choose_protocol(const Ring& ring, CollectiveKind kind, Bytes bytes);
Seconds ring_time(const Ring& ring, CollectiveKind kind, Bytes bytes);

}  // namespace polyphony
