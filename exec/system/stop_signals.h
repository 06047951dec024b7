// Handles SIGINT and SIGTERM on a thread of its own, so that a signal is noticed while other
// threads wait, and interrupts none of their calls.
//
// A signal ends the process within a second, with a line on stderr and exit status 1, after the
// peers (if any) were told. The exception is the time in which there is something to save, from the
// first stop_asked() to all_saved(): then the first signal only makes stop_asked() return true, and
// a second one ends the process.
#pragma once

#include <functional>
#include <string>

namespace polyphony::exec {

// Starts the signal thread. Call it first in main: threads that already run would still receive the
// signals.
void hear_stop_signals();
// Sets the function that tells the peers why this process stops; the signal thread calls it. An
// empty function removes it.
void tell_peers_by(std::function<void(const std::string& reason)> tell);
// Returns true if a signal asked for a stop. From the first call on, a first signal only asks.
bool stop_asked();
// States that there is nothing left to save: from now on a signal ends the process.
void all_saved();
// Does not return if a signal is ending the process; else does nothing. Call it before reporting an
// error, which may be a consequence of the signal.
void give_way_to_signal();

}  // namespace polyphony::exec
