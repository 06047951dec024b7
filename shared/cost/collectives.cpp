#include "shared/cost/collectives.h"

#include <algorithm>
#include <limits>

#include "shared/cost/collective_algorithms.h"

namespace polyphony {
namespace {

// Returns the rate of an all-to-all inside a domain as a fraction of a ring's: 0.60 / 0.74 over
// NVLink, 1 − 0.12 over xGMI (collectives.h).
double exchange_share(CollectiveLibrary library) {
  switch (library) {
    case CollectiveLibrary::gloo:
      return 1;
    case CollectiveLibrary::nccl:
      return 0.81;
    case CollectiveLibrary::rccl:
      return 0.88;
  }
  return 1;
}

// Returns the share of the node link's rate that `members` of a domain have together in a mesh.
double mesh_share(const Cluster& cluster, double members) {
  if (cluster.peer_link.value == 0 || members <= 1) return 1;
  return std::min(1.0, (members - 1) * cluster.peer_link.value / cluster.node_link.rate.value);
}

// The links of a group: the factors of its slowest members, and the number of their NICs.
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

// The fractions of NICs and uplinks that a group can use.
struct Shares {
  double ring = 1, exchange = 1;                          // fraction of a NIC's rate
  double leaf = std::numeric_limits<double>::infinity();  // all-to-all over uplinks, per NIC rate
};

// With Others::alike, a NIC is shared with ranks of other groups, and all ranks of a leaf switch
// share its uplinks: each ring crosses them once, an all-to-all between all pairs of ranks.
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
  // Rate of the uplinks of a group of leaf switches, in units of a NIC's rate.
  const double uplinks = cluster.leaf.nodes * nics / cluster.leaf.oversubscription;
  shares.ring = std::min(shares.ring, uplinks / (ranks / here * channels));
  shares.leaf = uplinks / ranks * (n - 1) / (n - here);
  return shares;
}

BytesPerSecond rate_of(const Ring& ring, CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all ? ring.exchange : ring.rate;
}

}  // namespace

double distinct_share(int places, const ExpertChoice& of) {
  if (of.choices < 1 || places < 1) return 1;
  double missed = 1;  // probability that all choices are elsewhere
  const double elsewhere = of.experts - static_cast<double>(of.experts) / places;
  for (int i = 0; i < of.choices; ++i)
    missed *= std::max(0.0, elsewhere - i) / std::max(1, of.experts - i);
  return places * (1 - missed) / of.choices;
}

Ring make_ring(const std::vector<Rank>& members, const Cluster& cluster,
               const HardwareProfile& profile, Others others, const ExpertChoice& choices) {
  Ring ring{static_cast<int>(members.size()), 1, {}, {}, {}, profile.collectives,
            profile.in_switch_efficiency};
  if (cluster.free_links) ring.ranks = 1;
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
  ring.links = mesh_share(cluster, static_cast<double>(n) / std::max(1, between + over_bus));
  const BytesPerSecond inside = cluster.node_link.rate *
                                (profile.collective_efficiency * links.link * ring.links),
                       nic = cluster.fabric_link.rate * profile.fabric_efficiency * links.nic,
                       alone = cluster.alone_between() * profile.fabric_efficiency;
  ring.rate = inside;
  const bool links_inside = between + over_bus < n;  // otherwise, no two neighbors share a domain
  if (links_inside) ring.hop = profile.collective_latency + cluster.node_link.latency;
  if (over_bus > 0) {
    ring.in_switch = 0;
    const BytesPerSecond bus = cluster.bus.rate * profile.collective_efficiency;
    ring.rate = links_inside ? std::min(inside, bus) : bus;
    ring.hop = std::max(ring.hop, profile.collective_latency + cluster.bus.latency);
  }
  const double copies = distinct_share(n, choices);
  ring.exchange = ring.rate * (exchange_share(profile.collectives) / copies);
  if (between == 0) return ring;
  const double node_share = static_cast<double>(n) / between;  // members per node
  const double sharing = static_cast<double>(n) / links.nics;  // members per NIC
  ring.channels = node_share / sharing;
  const Shares shares = shares_of(members, cluster, sharing, ring.channels, others);
  ring.rate = between == n ? std::min(nic * shares.ring, alone)
                           : std::min({ring.rate, nic * (ring.channels * shares.ring),
                                       alone * std::max(1.0, ring.channels)});
  const double node_copies = distinct_share(between, choices);
  ring.exchange = between == n
                      ? nic * (shares.exchange / copies)
                      : std::min(ring.exchange, nic * (shares.exchange / sharing *
                                                       ((n - 1) / (n - node_share) / node_copies)));
  ring.exchange = std::min(ring.exchange, nic * (shares.leaf / node_copies));
  // Each of the n − 1 transfers of a rank has a connection of its own; all share the rank's bus.
  if (cluster.connection.value > 0)
    ring.exchange = std::min(ring.exchange,
                             cluster.connection * (profile.fabric_efficiency * (n - 1) / copies));
  if (cluster.bus.rate.value > 0)
    ring.exchange =
        std::min(ring.exchange, cluster.bus.rate * (profile.fabric_efficiency / copies));
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

bool reduces_all(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_reduce_max;
}

int ring_hops(CollectiveKind kind, int ranks) { return (reduces_all(kind) ? 2 : 1) * (ranks - 1); }

// All-to-all: each rank sends 1/n of its array to every other rank.
Bytes ring_bytes(CollectiveKind kind, int ranks, Bytes bytes) {
  return Bytes(bytes.value * ring_hops(kind, ranks) / ranks);
}

Protocol choose_protocol(const Ring& ring, CollectiveKind kind, Bytes bytes) {
  if (ring.library == CollectiveLibrary::gloo) return {ring.hop * ring_hops(kind, ring.ranks), 1};
  const Bytes moved = ring_bytes(kind, ring.ranks, bytes);
  Protocol best;
  Seconds least{};
  for (const CollectiveAlgorithm& algorithm : collective_algorithms(ring.library)) {
    if (!algorithm.runs(ring, kind)) continue;
    const Hops hops = algorithm.hops(ring, kind);
    const double gain = algorithm.gain(ring);
    for (const LibraryProtocol& p : algorithm.protocols) {
      const Protocol offered{p.base + hops.inside * p.inside + hops.between * p.between,
                             p.share * gain};
      const Seconds time = offered.latency + moved / (rate_of(ring, kind) * offered.share);
      if (least.count() > 0 && time >= least) continue;
      least = time;
      best = offered;
    }
  }
  return best;
}

Seconds ring_time(const Ring& ring, CollectiveKind kind, Bytes bytes) {
  if (ring.ranks < 2) return Seconds(0);
  const Protocol protocol = choose_protocol(ring, kind, bytes);
  return protocol.latency +
         ring_bytes(kind, ring.ranks, bytes) / (rate_of(ring, kind) * protocol.share);
}

}  // namespace polyphony
