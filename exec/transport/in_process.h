// Ranks as threads of one process: the fastest transport on one machine, and the one the tests use
// most.
//   Collectives: members meet, each reads from the others' memory what it needs, and they meet
//   again so that nobody changes what is still read; small tensors are copied before, which saves
//   the second meeting. In an all-reduce every member adds up one slice of all members' tensors, in
//   group order, and writes it to all of them (small ones: every member adds up everything).
//   Messages: exec/transport/mailbox.h. An exception on one rank ends the run for all; a rank that waits
//   longer than `timeout` ends it too.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

// One transport per rank, to be used by that rank's thread or threads.
std::vector<std::unique_ptr<Transport>> make_in_process(int ranks, Seconds timeout = Seconds(300));

// Runs `body` once per rank, each on its own thread, and waits for all. When some throw, the others
// are woken, and the first exception that is not LostPeer is rethrown (else the first LostPeer).
void run_in_process(int ranks, const std::function<void(Transport&)>& body,
                    Seconds timeout = Seconds(300));

}  // namespace polyphony::exec
