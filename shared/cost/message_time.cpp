#include "shared/cost/message_time.h"

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

double message_efficiency(const Network& network, const HardwareProfile& profile, Rank from,
                          Rank to) {
  return network.over_fabric(from, to) ? profile.fabric_efficiency : profile.message_efficiency;
}

Seconds MessageTimes::of(Rank from, Rank to, Bytes bytes) const {
  if (from == to || bytes.value == 0) return Seconds(0);
  return message_delay(cluster_, profile_, from, to) +
         bytes / (network_.rate(from, to) * message_efficiency(network_, profile_, from, to));
}

}  // namespace polyphony
