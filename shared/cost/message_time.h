// The duration of a message from one rank to another: the latencies of both ends and of the link,
// then its bytes at the rate of a single flow. Not included: other flows on the same links, and
// rows that tensor-parallel receivers gather from each other.
//
// In a mesh (Cluster::peer_link) a message has one of its rank's links. It is modeled as a message
// over all of them that reaches only the share of one, so two messages to different peers at the
// same time are predicted too slow.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/hardware/network.h"

namespace polyphony {

// Returns the latency before the first byte is transferred.
Seconds message_delay(const Cluster& cluster, const HardwareProfile& profile, Rank from, Rank to);
// Returns the fraction of the link's rate that messages reach.
double message_efficiency(const Cluster& cluster, const HardwareProfile& profile, Rank from,
                          Rank to);

// Message times on one cluster.
class MessageTimes {
 public:
  MessageTimes(const Cluster& cluster, const HardwareProfile& profile)
      : cluster_(cluster),
        profile_(profile),
        network_(make_network(cluster, static_cast<std::uint32_t>(cluster.ranks()))) {}
  // Returns the duration of a message; 0 if source and destination are the same rank.
  Seconds of(Rank from, Rank to, Bytes bytes) const;

 private:
  Cluster cluster_;
  HardwareProfile profile_;
  Network network_;
};

}  // namespace polyphony
