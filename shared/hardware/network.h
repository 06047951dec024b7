// The links of a cluster, numbered, and which of them a transfer crosses. Each direction is a link
// of its own.
//   inside a domain       the sender's switch link up, the receiver's down
//   domains of one node   the sender's bus link up, the receiver's down
//   between nodes         the sender's bus link up if buses are stated, its NIC up, the receiver's
//                         NIC and bus link down; between different leaf switches also the uplinks
//                         of the sender's leaf and the downlinks of the receiver's
//   to host memory        the rank's bus link up (its host link if no buses are stated), then the
//                         memory of its node; back: down. A memory is one link for both directions,
//                         shared by all ranks of the node
// Several ranks may share a NIC. A single flow gets the rate of the slowest link that it crosses,
// and between nodes at most Cluster::connection. Rates are in bytes per second and per direction; a
// failed link has rate zero.
//
// make_network() builds it from a Cluster; a table written by hand may set the first three fields
// only. Source: own count of links; oversubscription as in data sheets of leaf-spine fabrics.
#pragma once

#include <array>
#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/ids.h"
#include "shared/units.h"

namespace polyphony {

// The links that one flow crosses, in order.
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
  // The other fields are used only if the cluster is not flat (Cluster::flat); then shaped is true.
  bool shaped = false;
  std::vector<std::uint32_t> bus_of{};              // by rank: the node whose bus it is on
  std::vector<std::uint32_t> nic_of{};              // by rank
  std::vector<std::uint32_t> leaf_of{};             // by rank: the leaf switch of its NIC
  std::uint32_t leaves = 0;                         // 0: one switch
  BytesPerSecond bus_rate{};                        // zero: transfers between nodes cross no bus
  BytesPerSecond connection{};                      // of one flow between nodes; zero: unlimited
  BytesPerSecond leaf_rate{};                       // of a leaf's uplinks together
  std::vector<double> node_factor{}, nic_factor{};  // by rank, by NIC
  // If activations are copied to hosts: by rank, the host whose memory it uses. Hosts are endpoints
  // of flows, numbered after the ranks.
  std::vector<std::uint32_t> host_of{};
  std::uint32_t hosts = 0;
  BytesPerSecond host_rate{};         // of a rank's host link, if there is no bus
  BytesPerSecond host_memory_rate{};  // of a host's memory

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

  // Returns the rate of a flow that shares its links with no other.
  BytesPerSecond rate(Rank a, Rank b) const {
    if (!shaped) return same_node(a, b) ? node_rate : fabric_rate;
    return slowest(a, b);
  }

  // Returns the links between two ends. Their numbers: first the ranks' switch links, then the
  // NICs, the ranks' bus links and the leaves' uplinks, each with up even and down odd; then the
  // hosts' memories, at even numbers.
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

// Whether activations are copied to host memory: by no rank; by all ranks; or, if one rank
// represents its whole node (folded), by that rank, with its share of the memory's rate.
enum class HostCopies : std::uint8_t { none, all, folded };
// Returns the network of the first `ranks` ranks of the cluster.
Network make_network(const Cluster& cluster, std::uint32_t ranks,
                     HostCopies copies = HostCopies::none);
// Returns the rate of all uplinks of a leaf together: the rate of its NICs ÷ oversubscription.
BytesPerSecond leaf_rate(const Cluster& cluster);

}  // namespace polyphony
