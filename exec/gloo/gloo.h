// The transport for ranks that are processes connected over TCP (host memory only).
//
// It uses c10d's TCPStore for rendezvous; ProcessGroupGloo for messages and for collectives built
// on messages; direct connections (exec/wire/peer_links.h) for collectives of small groups; and
// exec/wire/liveness.h to find out which rank was lost.
//
// Addresses are those of the network interface in GLOO_SOCKET_IFNAME, else of the interface on the
// route to the store. After LostPeer the transport's destructor waits for no other rank; end the
// process with leave_after() (exec/wire/liveness.h).
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
  Seconds timeout{600};       // for any one call; a rank may compute this long before it answers
  LivenessOptions liveness;
  std::string interface;  // network interface; empty: the one on the route to the store
  // Collectives of at most this many ranks and bytes use direct connections; larger ones use
  // messages. All-to-alls of at most this many ranks use direct connections whatever their bytes,
  // because a member does not know how many bytes the other members exchange.
  // Measured on 2, 4 and 8 ranks over 2 cores (tests/exec/transport/transport_bench.cpp): 7 to 60
  // times faster at 4 KiB, 2 to 4 at 1 MiB, the same or (8 ranks) half as fast at 16 MiB.
  int direct_ranks = 8;
  Bytes direct_bytes{4 << 20};
};

// Connects all ranks of the launch, and returns this rank's transport. Collective. Throws
// InputError if the store is not reachable, if it is not possible to host it, or if a rank does not
// appear.
std::unique_ptr<Transport> connect_gloo(const LaunchEnv& launch, const GlooOptions& options = {});

}  // namespace polyphony::exec
