// What a group of ranks offers a collective, and what one costs there: n ranks on k nodes, S bytes.
//
// Ring: n − 1 hops (all-reduce 2(n − 1)); over each edge hops/n · S bytes. Between nodes each of
// the n/k ranks of a node leads a ring of its own through its own NIC (NCCL's channels), so that
// n/k NICs carry it together.
//
// All-to-all: each rank sends S/n to each other; what leaves the node takes the rank's own NIC,
// what leaves the leaf switch its share of the uplinks. Rows that go to `choices` of `experts`
// each, once to every place that has one of them: a share of the copies, distinct_share. NVLink
// carries 0.60 of its rate then, where rings reach 0.74 (SimuMax 1.2, B200).
//
// "Node" is a scale-up domain (Cluster::domain). Where a node has several, one ring crosses its
// bus. A NIC that several members share carries their channels together, and a channel is one
// connection. The slowest member's link sets the pace (Cluster::degraded).
//
// Others::alike: all groups of the machine do the same at once, as tensor-parallel ranks do, and
// share NICs and leaf uplinks with this one; Others::idle: the flows of others are seen elsewhere.
//
// Time: latency + bytes / (rate · share). Without NCCL, the latency is that of all hops, and the
// share 1. With NCCL, the fastest of its protocols and, for all-reduce between nodes, trees of 2
// log2(k) hops: shared/cost/collective_algorithms.h.
//
// Sources: nccl-tests doc/PERFORMANCE.md (bandwidth terms); NCCL src/graph/tuning.cc (protocols).
// Does not model: PAT, channels short of the link's rate.
#pragma once

#include <utility>
#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/hardware/hardware.h"
#include "shared/program/program.h"

namespace polyphony {

// One rank: nothing to do.
struct Ring {
  int ranks = 1;
  int nodes = 1;
  BytesPerSecond rate{};      // of a ring
  BytesPerSecond exchange{};  // of an all-to-all
  Seconds hop{};              // without NCCL
  bool nccl = false;
  double in_switch = 0;  // HardwareProfile::in_switch_efficiency, where one switch joins all
  double channels = 1;   // NICs that carry a ring between two nodes
};
enum class Others : std::uint8_t { idle, alike };
// Of an all-to-all's rows: to how many experts, of how many; 0: one copy each.
struct ExpertChoice {
  int choices = 0, experts = 0;
};
// Of the copies of a row to each of its experts, those that are left when every place gets one at
// most; experts evenly over the places, choices without preference: places · (1 − C(E − E/places,
// k) / C(E, k)) / k. Own count: choices without repetition.
double distinct_share(int places, const ExpertChoice& choices);
Ring make_ring(const std::vector<Rank>& members, const Cluster& cluster,
               const HardwareProfile& profile, Others others = Others::idle,
               const ExpertChoice& choices = {});
// The transfers that carry a ring from its i-th member's node to the next one's: one for each NIC
// of its members there, each to its counterpart.
std::vector<std::pair<Rank, Rank>> channels_between(const std::vector<Rank>& members, std::size_t i,
                                                    const Cluster& cluster);
bool reduces_all(CollectiveKind kind);
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
