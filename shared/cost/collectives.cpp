#include "shared/cost/collectives.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace polyphony {
namespace {

// NCCL src/graph/tuning.cc: base, hop over NVLink, hop over the network; share of the rate. LL:
// half of each 8 bytes is a flag; LL128: 120 of 128 bytes are data; Simple. Trees reach 0.92 of a
// ring.
struct NcclProtocol {
  Seconds base, inside, between;
  double share;
};
constexpr Seconds us(double value) { return Seconds(value * 1e-6); }
constexpr NcclProtocol kRings[] = {{us(6.6), us(0.6), us(2.7), 0.5},
                                   {us(14.0), us(1.9), us(4.0), 0.92},
                                   {us(8.4), us(3.4), us(14.0), 1.0}};
constexpr NcclProtocol kTrees[] = {{us(6.8), us(0.6), us(5.0), 0.46},
                                   {us(14.0), us(1.25), us(8.5), 0.85},
                                   {us(8.4), us(4.0), us(14.0), 0.92}};

// What all-to-all reaches of a ring's rate over NVLink: 0.60 of 0.74.
constexpr double kExchangeShare = 0.81;

bool reduces_all(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_reduce_max;
}

// Of a group: the slowest members' factors, and how many NICs they have together.
struct GroupLinks {
  double link = 1, nic = 1;
  int nics = 0;
};
GroupLinks links_of(const std::vector<Rank>& members, const Cluster& cluster) {
  if (cluster.nics == 0 && cluster.degraded.empty())
    return {1, 1, static_cast<int>(members.size())};
  GroupLinks links;
  std::vector<int> nics;
  for (const Rank member : members) {
    const Degraded* degraded = cluster.degraded_at(member);
    Rank owner = member;
    if (degraded != nullptr) {
      links.link = std::min(links.link, degraded->link);
      if (degraded->nic_of) owner = Rank(static_cast<std::size_t>(*degraded->nic_of));
    }
    nics.push_back(cluster.nic_of(owner));
  }
  std::sort(nics.begin(), nics.end());
  nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
  links.nics = static_cast<int>(nics.size());
  for (const Degraded& degraded : cluster.degraded) {
    const int nic = cluster.nic_of(Rank(static_cast<std::size_t>(degraded.rank)));
    if (std::binary_search(nics.begin(), nics.end(), nic))
      links.nic = std::min(links.nic, degraded.nic);
  }
  return links;
}

// What a group gets of its NICs, and of the uplinks for each NIC's rate; 1: all.
struct Shares {
  double ring = 1, exchange = 1;                          // of a NIC
  double leaf = std::numeric_limits<double>::infinity();  // an all-to-all's rate over a NIC's
};

// Others alike: a NIC's ranks beside the group's take their part of it; a leaf's ranks share its
// uplinks, a ring's crossing once for every ring that passes, an exchange's in all pairs.
Shares shares_of(const std::vector<Rank>& members, const Cluster& cluster, double sharing,
                 double channels, Others others) {
  Shares shares;
  if (others == Others::idle || (cluster.nics == 0 && cluster.leaf.nodes == 0)) return shares;
  const int node = cluster.ranks_per_node, nics = cluster.nics > 0 ? cluster.nics : node;
  const double per_nic = static_cast<double>(node) / nics;
  shares.ring = shares.exchange = std::min(1.0, sharing / per_nic);
  if (cluster.leaf.nodes == 0) return shares;
  const auto group_of = [&](Rank rank) { return cluster.node_of(rank) / cluster.leaf.nodes; };
  const auto here =
      static_cast<double>(std::count_if(members.begin(), members.end(), [&](Rank rank) {
        return group_of(rank) == group_of(members.front());
      }));
  const auto n = static_cast<double>(members.size());
  if (here >= n) return shares;
  const double ranks = static_cast<double>(cluster.leaf.nodes) * node;
  // Uplinks of a group of leaves, in NICs' rates.
  const double uplinks = cluster.leaf.nodes * nics / cluster.leaf.oversubscription;
  shares.ring = std::min(shares.ring, uplinks / (ranks / here * channels));
  shares.leaf = uplinks / ranks * (n - 1) / (n - here);
  return shares;
}

BytesPerSecond rate_of(const Ring& ring, CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all ? ring.exchange : ring.rate;
}

}  // namespace

double distinct_share(int places, const Choices& of) {
  if (of.choices < 1 || places < 1) return 1;
  double missed = 1;  // all choices are elsewhere
  const double elsewhere = of.experts - static_cast<double>(of.experts) / places;
  for (int i = 0; i < of.choices; ++i)
    missed *= std::max(0.0, elsewhere - i) / std::max(1, of.experts - i);
  return places * (1 - missed) / of.choices;
}

Ring make_ring(const std::vector<Rank>& members, const Cluster& cluster,
               const HardwareProfile& profile, Others others, const Choices& choices) {
  Ring ring{static_cast<int>(members.size()), 1, {}, {}, {}, profile.nccl, 1};
  const int n = ring.ranks;
  if (n < 2) return ring;
  int between = 0, over_bus = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Rank a = members[i], b = members[(i + 1) % members.size()];
    if (cluster.domain_of(a) == cluster.domain_of(b)) continue;
    ++(cluster.node_of(a) == cluster.node_of(b) ? over_bus : between);
  }
  ring.nodes = std::max(1, between);
  const GroupLinks links = links_of(members, cluster);
  const BytesPerSecond inside = cluster.node_link.rate * profile.collective_efficiency * links.link,
                       nic = cluster.fabric_link.rate * profile.fabric_efficiency * links.nic;
  ring.rate = inside;
  if (between + over_bus < n) ring.hop = profile.collective_latency + cluster.node_link.latency;
  if (over_bus > 0) {
    const BytesPerSecond bus = cluster.bus.rate * profile.collective_efficiency;
    ring.rate = over_bus == n ? bus : std::min(inside, bus);
    ring.hop = std::max(ring.hop, profile.collective_latency + cluster.bus.latency);
  }
  const double copies = distinct_share(n, choices);
  ring.exchange = ring.rate * ((profile.nccl ? kExchangeShare : 1) / copies);
  if (between == 0) return ring;
  const double node_share = static_cast<double>(n) / between;  // members of a node
  const double sharing = static_cast<double>(n) / links.nics;  // members of a NIC
  ring.channels = node_share / sharing;
  const Shares shares = shares_of(members, cluster, sharing, ring.channels, others);
  ring.rate =
      between == n ? nic * shares.ring : std::min(ring.rate, nic * (ring.channels * shares.ring));
  const double node_copies = distinct_share(between, choices);
  ring.exchange = between == n
                      ? nic * (shares.exchange / copies)
                      : std::min(ring.exchange, nic * (shares.exchange / sharing *
                                                       ((n - 1) / (n - node_share) / node_copies)));
  ring.exchange = std::min(ring.exchange, nic * (shares.leaf / node_copies));
  ring.hop = std::max(ring.hop, profile.collective_latency + cluster.fabric_link.latency);
  return ring;
}

std::vector<std::pair<Rank, Rank>> channels_between(const std::vector<Rank>& members, std::size_t i,
                                                    const Cluster& cluster) {
  const auto n = members.size();
  const auto together = [&](Rank a, Rank b) {
    return cluster.domain_of(a) == cluster.domain_of(b) || cluster.node_of(a) == cluster.node_of(b);
  };
  const auto add = [&](std::vector<Rank>& ranks, Rank rank) {
    if (std::none_of(ranks.begin(), ranks.end(),
                     [&](Rank r) { return cluster.nic_of(r) == cluster.nic_of(rank); }))
      ranks.push_back(rank);
  };
  std::vector<Rank> from, to;
  for (std::size_t k = 0; k < n && together(members[(i + n - k) % n], members[i]); ++k)
    add(from, members[(i + n - k) % n]);
  for (std::size_t k = 1; k <= n && together(members[(i + k) % n], members[(i + 1) % n]); ++k)
    add(to, members[(i + k) % n]);
  std::reverse(from.begin(), from.end());
  std::vector<std::pair<Rank, Rank>> channels;
  for (std::size_t c = 0; c < std::max(from.size(), to.size()); ++c)
    channels.emplace_back(from[c % from.size()], to[c % to.size()]);
  return channels;
}

int ring_hops(CollectiveKind kind, int ranks) { return (reduces_all(kind) ? 2 : 1) * (ranks - 1); }

// All-to-all: each rank sends 1/n of its array to every other.
Bytes ring_bytes(CollectiveKind kind, int ranks, Bytes bytes) {
  return Bytes(bytes.value * ring_hops(kind, ranks) / ranks);
}

Protocol choose_protocol(const Ring& ring, CollectiveKind kind, Bytes bytes) {
  const int hops = ring_hops(kind, ring.ranks);
  if (!ring.nccl) return {ring.hop * hops, 1};
  const Bytes moved = ring_bytes(kind, ring.ranks, bytes);
  Protocol best;
  Seconds least{};
  const auto offer = [&](const NcclProtocol& p, double inside, double between) {
    const Protocol offered{p.base + inside * p.inside + between * p.between, p.share};
    const Seconds time = offered.latency + moved / (rate_of(ring, kind) * p.share);
    if (least.count() > 0 && time >= least) return;
    least = time;
    best = offered;
  };
  // A ring's steps that cross nodes; all-to-all sends to all at once.
  const int rounds = reduces_all(kind) ? 2 : 1;
  const double between = ring.nodes > 1 ? rounds * (ring.nodes - 1) : 0;
  if (kind == CollectiveKind::all_to_all) {
    for (const NcclProtocol& p : kRings) offer(p, 1, ring.nodes > 1 ? 1 : 0);
    return best;
  }
  for (const NcclProtocol& p : kRings) offer(p, hops - between, between);
  if (!reduces_all(kind) || ring.nodes == 1) return best;
  const double local = static_cast<double>(ring.ranks) / ring.nodes;
  for (const NcclProtocol& p : kTrees)
    offer(p, 2 * (local - 1), 2 * std::log2(static_cast<double>(ring.nodes)));
  return best;
}

Seconds ring_time(const Ring& ring, CollectiveKind kind, Bytes bytes) {
  if (ring.ranks < 2) return Seconds(0);
  const Protocol protocol = choose_protocol(ring, kind, bytes);
  return protocol.latency +
         ring_bytes(kind, ring.ranks, bytes) / (rate_of(ring, kind) * protocol.share);
}

}  // namespace polyphony
