// Ctrl-C while a long answer is worked out: asks it to end with what it has; a second one ends the
// process. Worker processes that are forked meanwhile die of theirs.
#pragma once

#include <csignal>

namespace polyphony::sim {

class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  static bool asked();

 private:
  struct sigaction before_{};
};

}  // namespace polyphony::sim
