// Ranks as processes over TCP: c10d's TCPStore to meet, its ProcessGroupGloo for messages, and for
// collectives made of messages; our own direct connections (exec/wire/peer_links.h) for collectives of
// small groups; exec/wire/liveness.h to name who is lost.
//   Addresses: the network interface in GLOO_SOCKET_IFNAME, else the one on the way to the store.
// After LostPeer the transport's destructor does not wait for anyone; leave the process with
// leave_after() (exec/wire/liveness.h).
#pragma once

#include <memory>
#include <string>

#include "exec/system/launch_env.h"
#include "exec/transport/communicator.h"
#include "exec/wire/liveness.h"
#include "shared/units.h"

namespace polyphony::exec {

struct GlooOptions {
  Seconds join_timeout{120};  // for all ranks to appear
  Seconds timeout{600};       // of any one call: a rank may compute that long before it answers
  LivenessOptions liveness;
  std::string interface;  // network interface; empty: the one on the way to the store
  // Collectives of at most that many ranks and bytes take the direct connections, others messages;
  // all-to-alls whatever their bytes, which only their two ends know.
  // Measured on 2, 4 and 8 ranks over 2 cores (tests/exec/transport/transport_bench.cpp): 7 to 60 times
  // faster at 4 KiB, 2 to 4 at 1 MiB, the same or (8 ranks) half as fast at 16 MiB.
  int direct_ranks = 8;
  Bytes direct_bytes{4 << 20};
};

// Collective over all ranks of the launch. InputError when the meeting point cannot be reached or
// hosted or a rank does not appear.
std::unique_ptr<Transport> connect_gloo(const LaunchEnv& launch, const GlooOptions& options = {});

}  // namespace polyphony::exec
