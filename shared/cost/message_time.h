// A message from one rank to another: latencies of both ends and of the link, then its bytes at the
// rate that a flow alone gets. Not counted: other flows on the same links, rows that receivers gather
// from each other.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/hardware/network.h"

namespace polyphony {

// Before its first byte moves.
Seconds message_delay(const Cluster& cluster, const HardwareProfile& profile, Rank from, Rank to);
// Of the link's rate.
double message_efficiency(const Network& network, const HardwareProfile& profile, Rank from,
                          Rank to);

class MessageTimes {
 public:
  MessageTimes(const Cluster& cluster, const HardwareProfile& profile)
      : cluster_(cluster),
        profile_(profile),
        network_(make_network(cluster, static_cast<std::uint32_t>(cluster.ranks()))) {}
  // None on one rank.
  Seconds of(Rank from, Rank to, Bytes bytes) const;

 private:
  Cluster cluster_;
  HardwareProfile profile_;
  Network network_;
};

}  // namespace polyphony
