// Finds out, through the store all ranks share, that a rank is gone, and which, so that every other
// rank can say so and leave.
//   Every `beat` a small thread writes this rank's sign of life and looks at the next rank's (the
//   ring skips ranks that have finished). A rank silent for `silent_beats` looks is lost; for
//   `alarmed_beats` when some rank has raised the alarm because a connection of its own broke: that
//   one watches whom it suspects. The first to notice writes the verdict; the others read it within
//   a beat. When the store goes, so did the rank that hosts it. That rank stays until the others
//   have read a verdict. A process that has not left `grace` after the verdict is ended with exit
//   status 1.
//   Silence is counted in the watcher's own beats and looks, and so is patience with the store
//   (shared/patience.h): stopping and continuing all ranks (SIGSTOP, a sleeping laptop) is no loss,
//   however long, and a starved watcher blames nobody for its own starvation.
// Does not see: a rank that lives but never gets anywhere (the transports' own time-outs do).
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
  // `store`: a connection of its own, for a blocked call on one connection blocks all others on it.
  // Collective; `host`: the rank that runs the store, invalid when the launcher does. `on_lost` is
  // called once, from one of the threads; `on_look` several times a second, never again after the
  // destructor.
  Liveness(c10::intrusive_ptr<c10d::Store> store, Rank self, int world_size, Rank host,
           const LivenessOptions& options, std::function<void()> on_lost,
           std::function<void()> on_look);
  // Leaves at once; call finish() first on a good end.
  ~Liveness();

  // True from the verdict on.
  const std::atomic<bool>& lost() const;
  // A call failed: asks all watchers to look sharply, waits for their verdict, and returns the
  // exception to throw. Without a verdict the suspect and `what` stand in.
  LostPeer explain(Rank suspect, const std::string& what);
  // This rank stops the run: the verdict names it.
  void report(const std::string& reason);
  // This rank is done. The host waits here for the others.
  void finish();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Says what happened on stderr and ends the process without destructors, which could wait for the
// dead.
[[noreturn]] void leave_after(const LostPeer& loss, Rank self);

}  // namespace polyphony::exec
