// Detects lost ranks with heartbeats in the store that all ranks share, and tells every other rank
// which rank was lost, so that each can report it and exit.
//
// Heartbeats: in every period `beat`, a small thread writes this rank's heartbeat and reads that of
// the next rank in a ring, which skips ranks that have finished. A rank whose heartbeat did not
// change for `silent_beats` reads is lost. After an alarm, which a rank raises when one of its
// connections breaks, `alarmed_beats` reads suffice, and the rank that raised it watches the peer
// that it suspects.
//
// Verdict: the first rank that notices writes the verdict into the store; the others read it within
// one beat. If the store is gone, the rank that hosts it is lost. The host stays until the others
// have read a verdict. A process that is still running `grace` after the verdict is ended with exit
// status 1.
//
// Silence is counted in the watcher's own beats, and so is the time that it waits for the store
// (shared/patience.h). So stopping and continuing all ranks, for however long (SIGSTOP, a suspended
// laptop), loses no rank, and a watcher that is starved of processor time reports no other rank
// lost.
//
// Does not detect: a rank that is alive but makes no progress (the transports' timeouts do).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

struct LivenessOptions {
  Seconds beat{0.5};
  int silent_beats = 30;
  int alarmed_beats = 5;
  Seconds store_silence{15};
  Seconds grace{10};
};

class Liveness {
 public:
  // Starts the watching threads. Collective over all ranks.
  //   store    a connection of its own, because a blocked call on a connection blocks all others
  //   host     the rank that runs the store; invalid if the launcher runs it
  //   on_lost  called once, from one of the threads
  //   on_look  called several times a second, and never after the destructor has returned
  Liveness(c10::intrusive_ptr<c10d::Store> store, Rank self, int world_size, Rank host,
           const LivenessOptions& options, std::function<void()> on_lost,
           std::function<void()> on_look);
  // Stops watching at once; after a successful run, call finish() first.
  ~Liveness();

  // True from the verdict on.
  const std::atomic<bool>& lost() const;
  // To be called after a failed call: raises the alarm, waits for the verdict, and returns the
  // exception to throw. If there is no verdict, the exception names `suspect` and `what`.
  LostPeer explain(Rank suspect, const std::string& what);
  // Stops the run: writes a verdict that names this rank and the reason.
  void report(const std::string& reason);
  // Marks this rank as finished. The rank that hosts the store waits here for the others.
  void finish();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Prints the loss on stderr and ends the process without running destructors, which could wait for
// lost ranks.
[[noreturn]] void leave_after(const LostPeer& loss, Rank self);

}  // namespace polyphony::exec
