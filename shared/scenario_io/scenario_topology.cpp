#include <algorithm>

#include "shared/form/degraded_ranks.h"
#include "shared/scenario_io/scenario_parts.h"

namespace polyphony {

std::vector<Degraded> read_degraded_ranks(const JsonValue& value) {
  std::vector<Degraded> ranks;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const JsonValue entry = value.at(i);
    Degraded degraded;
    entry.read("rank", degraded.rank);
    entry.read("device", degraded.device);
    entry.read("link", degraded.link);
    entry.read("nic", degraded.nic);
    int other = 0;
    if (entry.read("nic_of", other)) degraded.nic_of = other;
    for (const Degraded& before : ranks)
      if (before.rank == degraded.rank)
        entry.refuse_at("rank", "rank " + std::to_string(degraded.rank) + " has two entries",
                        "write one entry per rank");
    ranks.push_back(degraded);
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const Degraded& a, const Degraded& b) { return a.rank < b.rank; });
  return ranks;
}

void read_topology(const JsonValue& value, Cluster& cluster) {
  value.read("domain", cluster.domain);
  if (cluster.domain == cluster.ranks_per_node) cluster.domain = 0;
  value.read("bus", cluster.bus.rate);
  value.read("bus_latency", cluster.bus.latency);
  if (cluster.bus.rate.value > 0) cluster.host_link = cluster.bus;
  if (value.has("host_link") && cluster.bus.rate.value > 0)
    value.refuse_at("host_link",
                    "host_link must not be given together with bus, which is the link to the host",
                    "keep \"bus\" alone");
  value.read("host_link", cluster.host_link.rate);
  value.read("host_latency", cluster.host_link.latency);
  value.read("host_memory_rate", cluster.host_memory);
  value.read("nics", cluster.nics);
  if (cluster.nics == cluster.ranks_per_node) cluster.nics = 0;
  value.read("connection", cluster.connection);
  if (value.has("leaf")) {
    const JsonValue leaf = value.at("leaf");
    leaf.read("nodes", cluster.leaf.nodes);
    leaf.read("oversubscription", cluster.leaf.oversubscription);
    leaf.read("rails", cluster.leaf.rails);
  }
  if (value.has("degraded")) cluster.degraded = read_degraded_ranks(value.at("degraded"));
}

}  // namespace polyphony
