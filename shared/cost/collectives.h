// The duration of collectives: of S bytes over a group of n ranks on k nodes.
//   time = latency + bytes over an edge / (rate · share)
// With Gloo, the latency is that of all hops and the share is 1. With NCCL or RCCL, the fastest of
// the library's protocols is used and, for all-reduce between nodes, trees of 2·log2(k) hops
// (shared/cost/collective_algorithms.h).
//
// Ring: n − 1 hops (all-reduce: 2(n − 1)), hops/n · S bytes over each edge. Between nodes, each of
// the n/k ranks of a node carries a ring of its own over its own NIC (NCCL's channels), so that n/k
// NICs share the traffic.
//
// All-to-all: each rank sends S/n to every other rank. Traffic that leaves the node uses the rank's
// own NIC, traffic that leaves the leaf switch its share of the uplinks. If rows go to `choices` of
// `experts`, a rank that holds several of a token's experts receives one copy:
// distinct_share() is the fraction of copies that remains.
// NVLink reaches 0.60 of its rate in an all-to-all, and 0.74 in a ring (SimuMax 1.2, B200); xGMI
// 0.88 of a ring's rate (AMD-AGI/Primus at fd1eeab, collective_args.py: the derate of a full mesh,
// calibrated on MI325X).
//
// Mesh (Cluster::peer_link): a member has one link to each other member, so n members of a domain
// have n − 1 links each. Rings that use different links run at the same time, as in RCCL, which has
// seven of them for eight GPUs (ROCm/rccl src/graph/rome_models.cc, rome_model_79).
//
// "Node" means a scale-up domain (Cluster::domain). If a node has several domains, one ring crosses
// its bus. A NIC that several members share carries all their channels; a channel is one
// connection. The slowest member's link determines the rate (Cluster::degraded).
//
// Sources: nccl-tests doc/PERFORMANCE.md (bandwidth terms); NCCL src/graph/tuning.cc (protocols).
// Not modeled: PAT, channels that do not reach the link's rate; messages that other ranks of a mesh
// forward.
#pragma once

#include <utility>
#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/hardware/hardware.h"
#include "shared/program/program.h"

namespace polyphony {

// The number and speed of a group's links, as collectives use them. With one rank, collectives take
// no time.
struct Ring {
  int ranks = 1;
  int nodes = 1;
  BytesPerSecond rate{};      // rate of a ring
  BytesPerSecond exchange{};  // rate of an all-to-all
  Seconds hop{};              // latency of a hop, with Gloo
  CollectiveLibrary library = CollectiveLibrary::gloo;
  double in_switch = 0;  // HardwareProfile::in_switch_efficiency; 0 if no switch joins all members
  double channels = 1;   // number of NICs that carry a ring between two nodes
  double links = 1;      // share of Cluster::node_link that the group's links have in a mesh
};
// What other groups do at the same time.
//   idle   nothing; if their flows compete for links, the simulator accounts for it
//   alike  all groups of the machine run the same collective, as tensor-parallel groups do, and
//          share NICs and leaf uplinks with this one
enum class Others : std::uint8_t { idle, alike };
// An all-to-all sends each row to `choices` of `experts`; 0: each row is sent once.
struct ExpertChoice {
  int choices = 0, experts = 0;
};
// Returns the fraction of the copies of a row (one per chosen expert) that remains if each of
// `places` ranks or nodes receives at most one copy:
//   places · (1 − C(E − E/places, k) / C(E, k)) / k,   k choices of E experts
// Experts are spread evenly over the places and are chosen uniformly, without repetition.
// Source: own derivation.
double distinct_share(int places, const ExpertChoice& choices);
// Returns the ring over the members, in their order.
Ring make_ring(const std::vector<Rank>& members, const Cluster& cluster,
               const HardwareProfile& profile, Others others = Others::idle,
               const ExpertChoice& choices = {});
// Returns the transfers (source, destination) that carry a ring from the node of its i-th member to
// the node of the next one: one per NIC of the members there, each to its counterpart.
std::vector<std::pair<Rank, Rank>> channels_between(const std::vector<Rank>& members, std::size_t i,
                                                    const Cluster& cluster);
// Returns true for the kinds of all-reduce.
bool reduces_all(CollectiveKind kind);
// Returns the number of sequential hops of a ring collective.
int ring_hops(CollectiveKind kind, int ranks);
// Returns the bytes that cross each edge of the ring; `bytes` is the size of the whole array.
Bytes ring_bytes(CollectiveKind kind, int ranks, Bytes bytes);

// The protocol of a collective of some size: time = latency + bytes / (rate · share).
struct Protocol {
  Seconds latency{};
  double share = 1;
};
// Returns the fastest protocol for a collective of `bytes`, the size of the whole array.
Protocol choose_protocol(const Ring& ring, CollectiveKind kind, Bytes bytes);
// Returns the duration of the collective with that protocol.
Seconds ring_time(const Ring& ring, CollectiveKind kind, Bytes bytes);

}  // namespace polyphony
