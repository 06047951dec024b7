// Where it runs: nodes of accelerators, the links between them, and what they cost.
//   Every rank has an up and a down link to its node's switch (NVLink, PCIe or shared memory), one
//   to the fabric (its NIC), and, where the switch joins less than a node, one to the node's bus.
//   domain    ranks that one switch joins: a node (absent), part of one (NVLink pairs), or several
//             (NVL72). Consecutive ranks.
//   nics      of a node, shared evenly by consecutive ranks; absent: one for each rank
//   bus       an accelerator's own PCIe link: what it sends to other domains of its node, and, where
//             one is stated, what it sends by way of a NIC
//   connection  the most that one transfer gets of a NIC (a socket, a queue pair): several ranks'
//             transfers go side by side, a ring has one for each of its NICs
//   leaf      groups of nodes under a leaf switch, its uplinks thinner than its NICs together; with
//             rails, NIC i of a node is on leaf i mod rails of its group. Above the leaves: enough
//   free_links  messages and collectives take no time, wherever they go
//   degraded  factors of single ranks' rates
// What a transfer crosses: shared/hardware/network.h. Rates are per direction. Does not model: a
// host bridge slower than its links together, spine switches. Sources of the shipped devices:
// shared/hardware/devices.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/ids.h"
#include "shared/number_format.h"
#include "shared/units.h"

namespace polyphony {

// What an accelerator (or CPU core) can do, and how much of it real kernels reach. See
// shared/hardware/hardware.h for how it is used.
struct Device {
  std::string name;                      // "H100-SXM"
  FlopsPerSecond fp32{}, bf16{}, fp8{};  // dense matrix peaks; zero: not supported
  BytesPerSecond memory_rate{};
  Bytes memory{};
  int processors = 0;  // that run a thread block each; 0: not known
  bool operator==(const Device&) const = default;
};

struct Link {
  BytesPerSecond rate{};
  Seconds latency{};
  bool operator==(const Link&) const = default;
};

// Factors of one rank's rates: 1 is as it should be, 0 a link that has failed.
struct Degraded {
  int rank = 0;
  double device = 1;  // of compute and memory rates
  double link = 1;    // its node link
  double nic = 1;
  std::optional<int> nic_of;  // it uses the NIC of this rank of its node
  bool operator==(const Degraded&) const = default;
};

struct Leaf {
  int nodes = 0;                // of a group; 0: one switch joins all
  double oversubscription = 1;  // rate of a leaf's NICs ÷ rate of its uplinks
  int rails = 1;                // leaves of a group
  bool operator==(const Leaf&) const = default;
};

struct Cluster {
  Device device;
  int nodes = 1;
  int ranks_per_node = 1;
  Link node_link;    // between accelerators of one domain
  Link fabric_link;  // per NIC, between nodes
  int domain = 0;    // ranks that node_link joins; 0: those of a node
  Link bus{};        // between domains of one node, and to the NIC; zero: no such link counts
  Link host_link{};  // an accelerator's, to its node's memory; a stated bus takes its place
  BytesPerSecond host_memory{};  // of a node's memory, reads and writes together; zero: never short
  int nics = 0;                  // of a node; 0: one for each rank
  BytesPerSecond connection{};   // of a NIC; zero: all of it
  Leaf leaf{};
  bool free_links = false;
  std::vector<Degraded> degraded{};  // by rank, rising
  std::string profile;               // hardware profile: a shipped name, or a path
  double dollars_per_rank_hour = 0;
  Watts busy_power{}, idle_power{};  // of a device; zero: not known
  bool operator==(const Cluster&) const = default;

  int ranks() const { return nodes * ranks_per_node; }
  int node_of(Rank rank) const { return static_cast<int>(rank.value) / ranks_per_node; }
  int domain_size() const { return domain > 0 ? domain : ranks_per_node; }
  int domain_of(Rank rank) const { return static_cast<int>(rank.value) / domain_size(); }
  // Of all NICs, from the first node's first on; as wired, whatever is degraded.
  int nic_of(Rank rank) const;
  int leaf_of(Rank rank) const;  // of the leaf switch that the rank's NIC is on
  // Of the fabric's link, what one transfer of one rank gets at most.
  BytesPerSecond alone_between() const;
  // Nodes of equal ranks around one switch each, a NIC a rank that nothing else slows, one fabric:
  // positions in a node say everything.
  bool flat() const;
  Cluster healthy() const;                       // nothing degraded
  const Degraded* degraded_at(Rank rank) const;  // null: as it should be
};

}  // namespace polyphony
