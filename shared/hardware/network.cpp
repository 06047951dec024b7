#include "shared/hardware/network.h"

#include <algorithm>

namespace polyphony {

Crossing Network::shaped_crossing(Rank a, Rank b) const {
  const auto ranks = static_cast<std::uint32_t>(node_of.size());
  const Way taken = way(a, b);
  if (taken == Way::bus) return {{2 * (2 * ranks + a.value), 2 * (2 * ranks + b.value) + 1}, 2};
  if (taken == Way::host) {  // up through the rank's link into the memory, or down
    const std::uint32_t memory = 6 * ranks + 2 * leaves;
    const auto of = [&](Rank host) { return memory + 2 * (host.value - ranks); };
    if (is_host(b)) return {{2 * (2 * ranks + a.value), of(b)}, 2};
    return {{of(a), 2 * (2 * ranks + b.value) + 1}, 2};
  }
  Crossing path;
  const auto add = [&](std::uint32_t link) { path.links[path.count++] = link; };
  const bool by_bus = bus_rate.value > 0;
  if (by_bus) add(2 * (2 * ranks + a.value));
  add(2 * (ranks + nic_of[a.value]));
  if (taken == Way::spine) {
    add(2 * (3 * ranks + leaf_of[a.value]));
    add(2 * (3 * ranks + leaf_of[b.value]) + 1);
  }
  add(2 * (ranks + nic_of[b.value]) + 1);
  if (by_bus) add(2 * (2 * ranks + b.value) + 1);
  return path;
}

BytesPerSecond Network::capacity(std::uint32_t link) const {
  const auto ranks = static_cast<std::uint32_t>(node_of.size());
  const std::uint32_t end = link / 2;
  if (end < ranks) return shaped ? node_rate * node_factor[end] : node_rate;
  if (end < 2 * ranks) return shaped ? fabric_rate * nic_factor[end - ranks] : fabric_rate;
  if (end < 3 * ranks) return bus_rate.value > 0 ? bus_rate : host_rate;
  return end < 3 * ranks + leaves ? leaf_rate : host_memory_rate;
}

BytesPerSecond Network::slowest(Rank a, Rank b) const {
  const Crossing path = crossing(a, b);
  BytesPerSecond least = capacity(path.links[0]);
  for (const std::uint32_t link : path) least = std::min(least, capacity(link));
  if (connection.value > 0 && over_fabric(a, b)) least = std::min(least, connection);
  return least;
}

BytesPerSecond leaf_rate(const Cluster& cluster) {
  const int nics = cluster.nics > 0 ? cluster.nics : cluster.ranks_per_node;
  const double joined = static_cast<double>(cluster.leaf.nodes) * nics / cluster.leaf.rails;
  return cluster.fabric_link.rate * (joined / cluster.leaf.oversubscription);
}

namespace {

void add_hosts(const Cluster& cluster, HostCopies copies, Network& network) {
  const auto ranks = static_cast<std::uint32_t>(network.node_of.size());
  const bool folded = copies == HostCopies::folded;
  for (std::uint32_t r = 0; r < ranks; ++r)
    network.host_of.push_back(folded ? r : static_cast<std::uint32_t>(cluster.node_of(Rank(r))));
  network.hosts = ranks == 0 ? 0 : network.host_of.back() + 1;
  network.host_rate = cluster.host_link.rate;
  // A memory without a stated rate gets the rate of all host links together, so it is never the
  // limit.
  const BytesPerSecond of_node = cluster.host_memory.value > 0
                                     ? cluster.host_memory
                                     : cluster.host_link.rate * (2.0 * cluster.ranks_per_node);
  network.host_memory_rate = folded ? of_node / cluster.ranks_per_node : of_node;
}

}  // namespace

Network make_network(const Cluster& cluster, std::uint32_t ranks, HostCopies copies) {
  Network network;
  network.node_rate = cluster.node_link.rate;
  network.fabric_rate = cluster.fabric_link.rate;
  network.shaped = copies != HostCopies::none || !cluster.flat();
  const auto number = [](int value) { return static_cast<std::uint32_t>(value); };
  for (std::uint32_t r = 0; r < ranks; ++r) {
    network.node_of.push_back(number(cluster.domain_of(Rank(r))));
    if (!network.shaped) continue;
    network.bus_of.push_back(number(cluster.node_of(Rank(r))));
    network.nic_of.push_back(number(cluster.nic_of(Rank(r))));
    network.leaf_of.push_back(number(cluster.leaf_of(Rank(r))));
  }
  if (!network.shaped) return network;
  if (copies != HostCopies::none) add_hosts(cluster, copies, network);
  network.bus_rate = cluster.bus.rate;
  network.connection = cluster.connection;
  if (cluster.leaf.nodes > 0) {
    for (const std::uint32_t leaf : network.leaf_of)
      network.leaves = std::max(network.leaves, leaf + 1);
    network.leaf_rate = leaf_rate(cluster);
  }
  network.node_factor.assign(ranks, 1);
  network.nic_factor.assign(ranks, 1);  // there is at most one NIC per rank
  for (const Degraded& degraded : cluster.degraded) {
    const auto rank = number(degraded.rank);
    if (rank >= ranks) continue;
    network.node_factor[rank] = degraded.link;
    double& nic = network.nic_factor[number(cluster.nic_of(Rank(rank)))];
    nic = std::min(nic, degraded.nic);
    if (!degraded.nic_of) continue;
    const Rank other(number(*degraded.nic_of));
    network.nic_of[rank] = number(cluster.nic_of(other));
    network.leaf_of[rank] = number(cluster.leaf_of(other));
  }
  return network;
}

}  // namespace polyphony
