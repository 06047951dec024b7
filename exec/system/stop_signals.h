// SIGINT and SIGTERM to this process, heard by a thread of its own: no call that waits is deaf to
// them, and none is interrupted.
//   A signal ends the process within a second, with a line on stderr and exit status 1, after the
//   peers were told if there are any. Only while there is something to save, from the first
//   stop_asked() to all_saved(), a first one but asks; a second one ends it then too.
#pragma once

#include <functional>
#include <string>

namespace polyphony::exec {

// First in main: threads that run already would still take the signals.
void hear_stop_signals();
// How to tell the peers, called from the thread; empty: no longer.
void tell_peers_by(std::function<void(const std::string& reason)> tell);
bool stop_asked();
void all_saved();
// A signal is ending the process: what goes wrong from then on is its consequence. Does not return
// then.
void give_way_to_signal();

}  // namespace polyphony::exec
