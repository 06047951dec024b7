// The transport for ranks that are threads of one process: the fastest one on a single machine, and
// the one that most tests use.
//
// Collectives: the members meet at a barrier, each reads what it needs from the other members'
// memory, and a second barrier keeps them from changing memory that is still being read. Small
// tensors are copied first, which saves the second barrier. In an all-reduce each member sums one
// slice of all members' tensors, in group order, and writes the sum to all of them; for small
// tensors each member sums everything.
//
// Messages: exec/transport/mailbox.h. An exception on one rank ends the run for all ranks, and so
// does a rank that waits longer than `timeout`.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

// Returns one transport per rank, to be used by that rank's thread or threads.
std::vector<std::unique_ptr<Transport>> make_in_process(int ranks, Seconds timeout = Seconds(300));

// Runs `body` once per rank, each on its own thread, and waits for all. If a rank throws, the
// others are woken, and the first exception that is not LostPeer is rethrown (else the first
// LostPeer).
void run_in_process(int ranks, const std::function<void(Transport&)>& body,
                    Seconds timeout = Seconds(300));

}  // namespace polyphony::exec
