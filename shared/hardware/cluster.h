// A cluster: nodes of accelerators, the links between them, and their prices.
//   Every rank has an up and a down link to its node's switch (NVLink, PCIe or shared memory), one
//   to the fabric (its NIC), and, if a switch connects less than a node, one to the node's bus.
//   Rates are per direction.
//   domain      consecutive ranks that one switch connects: a node (default), a part of one (NVLink
//               pairs), or several (NVL72)
//   peer_link   if accelerators are joined pair by pair (a mesh, as xGMI) and not by a switch:
//               the rate of one pair's link, of which node_link is the sum
//   nics        of a node, shared evenly by consecutive ranks; absent: one per rank
//   bus         an accelerator's own PCIe link. It carries what goes to other domains of the node
//               and, if a bus is stated, what goes through a NIC
//   connection  the most of a NIC's rate that one transfer gets (one socket or queue pair).
//               Transfers of several ranks share the NIC in parallel; a ring has one transfer per
//               NIC
//   leaf        groups of nodes under leaf switches, whose uplinks have less bandwidth than their
//               NICs together. With rails, NIC i of a node is on leaf i mod rails of its group.
//               Above the leaf switches bandwidth is unlimited
//   free_links  messages and collectives take no time
//   degraded    factors on the rates of single ranks
// Which links a transfer crosses: shared/hardware/network.h. Sources of the shipped devices:
// shared/hardware/devices.
// Does not model: a host bridge that is slower than its links together; spine switches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/ids.h"
#include "shared/number_format.h"
#include "shared/units.h"

namespace polyphony {

// Peak figures of an accelerator or CPU core. How much of them real kernels reach is part of the
// profile (shared/hardware/hardware.h).
struct Device {
  std::string name;                      // "H100-SXM"
  FlopsPerSecond fp32{}, bf16{}, fp8{};  // dense matrix peaks; zero: not supported
  BytesPerSecond memory_rate{};
  Bytes memory{};
  int processors = 0;      // streaming multiprocessors; 0: unknown
  FlopsPerSecond nvfp4{};  // as fp8
  bool operator==(const Device&) const = default;
};

struct Link {
  BytesPerSecond rate{};
  Seconds latency{};
  bool operator==(const Link&) const = default;
};

// Factors on one rank's rates: 1 is healthy, 0 is a link that has failed.
struct Degraded {
  int rank = 0;
  double device = 1;          // compute and memory rates
  double link = 1;            // its node link
  double nic = 1;             // its NIC
  std::optional<int> nic_of;  // uses the NIC of this rank of its node instead of its own
  bool operator==(const Degraded&) const = default;
};

struct Leaf {
  int nodes = 0;                // nodes per group; 0: one switch connects all nodes
  double oversubscription = 1;  // rate of a leaf's NICs ÷ rate of its uplinks
  int rails = 1;                // leaf switches per group
  bool operator==(const Leaf&) const = default;
};

struct Cluster {
  Device device;
  int nodes = 1;
  int ranks_per_node = 1;
  Link node_link;              // between accelerators of one domain
  Link fabric_link;            // per NIC, between nodes
  int domain = 0;              // ranks that node_link connects; 0: those of a node
  BytesPerSecond peer_link{};  // in a mesh, of node_link to each other rank; zero: a switch
  Link bus{};                  // between domains of one node, and to the NIC; zero: not a limit
  Link host_link{};            // an accelerator's link to host memory; a stated bus is used instead
  BytesPerSecond host_memory{};  // of a node's memory, reads plus writes; zero: never the limit
  int nics = 0;                  // per node; 0: one per rank
  BytesPerSecond connection{};   // most of a NIC's rate per transfer; zero: all of it
  Leaf leaf{};
  bool free_links = false;
  std::vector<Degraded> degraded{};  // ascending by rank
  std::string profile;               // hardware profile: a shipped name, or a path
  double dollars_per_rank_hour = 0;
  Watts busy_power{}, idle_power{};  // of a device; zero: unknown
  bool operator==(const Cluster&) const = default;

  int ranks() const { return nodes * ranks_per_node; }
  int node_of(Rank rank) const { return static_cast<int>(rank.value) / ranks_per_node; }
  int domain_size() const { return domain > 0 ? domain : ranks_per_node; }
  int domain_of(Rank rank) const { return static_cast<int>(rank.value) / domain_size(); }
  // Returns the number of the rank's NIC, counted over all nodes, as wired (ignores `degraded`).
  int nic_of(Rank rank) const;
  // Returns the number of the leaf switch that the rank's NIC is connected to.
  int leaf_of(Rank rank) const;
  // Returns the highest rate that a single transfer between nodes can reach.
  BytesPerSecond alone_between() const;
  // Returns whether the network is uniform: one switch per node, one NIC per rank that no bus or
  // connection limits, one fabric without leaf switches, nothing degraded. Then the rate between
  // two ranks depends only on whether they share a node.
  bool flat() const;
  Cluster healthy() const;                       // the same cluster with nothing degraded
  const Degraded* degraded_at(Rank rank) const;  // null if the rank is not degraded
};

}  // namespace polyphony
