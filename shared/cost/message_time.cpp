#include "shared/cost/message_time.h"

#include <algorithm>

namespace polyphony {
namespace {

const Link& link_between(const Cluster& cluster, Rank a, Rank b) {
  if (cluster.domain_of(a) == cluster.domain_of(b)) return cluster.node_link;
  return cluster.node_of(a) == cluster.node_of(b) ? cluster.bus : cluster.fabric_link;
}

}  // namespace

Seconds message_delay(const Cluster& cluster, const HardwareProfile& profile, Rank from, Rank to) {
  return profile.message_latency + link_between(cluster, from, to).latency;
}

double message_efficiency(const Cluster& cluster, const HardwareProfile& profile, Rank from,
                          Rank to) {
  if (cluster.domain_of(from) == cluster.domain_of(to)) {
    if (cluster.peer_link.value == 0) return profile.message_efficiency;
    return profile.message_efficiency *
           std::min(1.0, cluster.peer_link.value / cluster.node_link.rate.value);
  }
  return cluster.node_of(from) == cluster.node_of(to) ? profile.message_efficiency
                                                      : profile.fabric_efficiency;
}

Seconds MessageTimes::of(Rank from, Rank to, Bytes bytes) const {
  if (from == to || bytes.value == 0) return Seconds(0);
  return message_delay(cluster_, profile_, from, to) +
         bytes / (network_.rate(from, to) * message_efficiency(cluster_, profile_, from, to));
}

}  // namespace polyphony
