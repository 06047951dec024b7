#include "shared/hardware/cluster.h"

#include <algorithm>

namespace polyphony {

int Cluster::nic_of(Rank rank) const {
  if (nics == 0) return static_cast<int>(rank.value);
  const int local = static_cast<int>(rank.value) % ranks_per_node;
  return node_of(rank) * nics + local * nics / ranks_per_node;
}

int Cluster::leaf_of(Rank rank) const {
  if (leaf.nodes == 0) return 0;
  const int here = nics > 0 ? nics : ranks_per_node;
  return node_of(rank) / leaf.nodes * leaf.rails + nic_of(rank) % here % leaf.rails;
}

BytesPerSecond Cluster::alone_between() const {
  BytesPerSecond rate = fabric_link.rate;
  for (const BytesPerSecond other : {bus.rate, connection})
    if (other.value > 0) rate = std::min(rate, other);
  return rate;
}

Cluster Cluster::healthy() const {
  Cluster cluster = *this;
  cluster.degraded.clear();
  return cluster;
}

bool Cluster::flat() const {
  return domain_size() == ranks_per_node && nics == 0 && leaf.nodes == 0 && degraded.empty() &&
         bus.rate.value == 0 && connection.value == 0;
}

const Degraded* Cluster::degraded_at(Rank rank) const {
  const auto found = std::lower_bound(
      degraded.begin(), degraded.end(), rank,
      [](const Degraded& d, Rank r) { return d.rank < static_cast<int>(r.value); });
  if (found == degraded.end() || found->rank != static_cast<int>(rank.value)) return nullptr;
  return &*found;
}

}  // namespace polyphony
