// The links of a cluster as transfers cross them, by number, each way a link of its own:
//   inside a domain       sender's switch link up, receiver's down
//   domains of one node   sender's bus link up, receiver's down
//   between nodes         sender's bus link up where buses are stated, its NIC up, receiver's NIC
//                         and bus link down; under different leaf switches between them the
//                         uplinks of the sender's leaf and the downlinks of the receiver's
//   to the host's memory  the rank's bus link (host link where no buses are stated) up, the memory of
//                         its node; back, down. A memory is one link for both ways, of all its ranks
// A NIC may be several ranks'. A flow alone goes at the rate of the slowest link that it crosses, and
// between nodes at no more than a connection's.
// Rates in bytes a second and per direction; a link that has failed has none.
// Made from a Cluster by make_network(); a table by hand may set the first three fields alone.
// Source: own count of links; oversubscription as data sheets of leaf-spine fabrics give it.
#pragma once

#include <array>
#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/ids.h"
#include "shared/units.h"

namespace polyphony {

// Links that one flow crosses, in order.
struct Crossing {
  std::array<std::uint32_t, 6> links{};
  std::uint32_t count = 0;
  const std::uint32_t* begin() const { return links.data(); }
  const std::uint32_t* end() const { return links.data() + count; }
};

struct Network {
  enum class Way : std::uint8_t { domain, bus, host, leaf, spine };

  std::vector<std::uint32_t> node_of;  // by rank: its domain
  BytesPerSecond node_rate{};
  BytesPerSecond fabric_rate{};  // of a NIC
  // The rest is looked at only when the cluster is not flat (Cluster::flat).
  bool shaped = false;
  std::vector<std::uint32_t> bus_of{};              // by rank: the node whose bus it is on
  std::vector<std::uint32_t> nic_of{};              // by rank
  std::vector<std::uint32_t> leaf_of{};             // by rank: the leaf switch of its NIC
  std::uint32_t leaves = 0;                         // 0: one switch
  BytesPerSecond bus_rate{};                        // zero: transfers between nodes cross none
  BytesPerSecond connection{};                      // of one flow between nodes; zero: not limited
  BytesPerSecond leaf_rate{};                       // of a leaf's uplinks together
  std::vector<double> node_factor{}, nic_factor{};  // by rank, by NIC
  // Where activations are copied to hosts: by rank, whose memory. Hosts are ends of flows, numbered after
  // the ranks.
  std::vector<std::uint32_t> host_of{};
  std::uint32_t hosts = 0;
  BytesPerSecond host_rate{};         // of a rank's link where there is no bus
  BytesPerSecond host_memory_rate{};  // of a memory

  std::uint32_t ends() const { return static_cast<std::uint32_t>(node_of.size()) + hosts; }
  bool is_host(Rank end) const { return end.value >= node_of.size(); }
  Rank host(Rank rank) const { return Rank(node_of.size() + host_of[rank.value]); }

  bool same_node(Rank a, Rank b) const { return node_of[a.value] == node_of[b.value]; }
  Way way(Rank a, Rank b) const {
    if (hosts > 0 && (is_host(a) || is_host(b))) return Way::host;
    if (same_node(a, b)) return Way::domain;
    if (!shaped) return Way::leaf;
    if (bus_of[a.value] == bus_of[b.value]) return Way::bus;
    return leaves == 0 || leaf_of[a.value] == leaf_of[b.value] ? Way::leaf : Way::spine;
  }
  bool over_fabric(Rank a, Rank b) const { return way(a, b) >= Way::leaf; }

  // Of a flow alone.
  BytesPerSecond rate(Rank a, Rank b) const {
    if (!shaped) return same_node(a, b) ? node_rate : fabric_rate;
    return slowest(a, b);
  }

  // Links: by rank its switch link, by NIC, by rank its bus link, by leaf; up even, down odd. Then by host
  // its memory, even.
  Crossing crossing(Rank a, Rank b) const {
    const auto ranks = static_cast<std::uint32_t>(node_of.size());
    if (way(a, b) == Way::domain) return {{2 * a.value, 2 * b.value + 1}, 2};
    if (!shaped) return {{2 * (ranks + a.value), 2 * (ranks + b.value) + 1}, 2};
    return shaped_crossing(a, b);
  }
  std::uint32_t links() const {
    const auto ranks = static_cast<std::uint32_t>(node_of.size());
    return shaped ? 6 * ranks + 2 * leaves + 2 * hosts : 4 * ranks;
  }
  BytesPerSecond capacity(std::uint32_t link) const;

 private:
  BytesPerSecond slowest(Rank a, Rank b) const;
  Crossing shaped_crossing(Rank a, Rank b) const;
};

// Whether there are copies to hosts: of all ranks, or of those that stand for all others of their node
// (folded), which have as much of its memory as each of them would.
enum class HostCopies : std::uint8_t { none, all, folded };
// Of the cluster's first ranks.
Network make_network(const Cluster& cluster, std::uint32_t ranks,
                     HostCopies copies = HostCopies::none);
// A leaf's uplinks together: the rate of its NICs ÷ oversubscription.
BytesPerSecond leaf_rate(const Cluster& cluster);

}  // namespace polyphony
