// A timeout that does not count time during which the process itself was suspended. Between two
// calls of over() at most `kLongestLook` counts: a longer gap means that this process was stopped
// (SIGSTOP, a suspended machine), and the processes it waits for may have been stopped too. Time
// during which the whole job is suspended therefore does not count towards the timeout, whichever
// clock is used.
//   over() must be called several times a second, with the time of one steady clock. If it is
//   called less often, the timeout takes longer than its limit.
#pragma once

#include <algorithm>

#include "shared/units.h"

namespace polyphony {

class Patience {
 public:
  static constexpr Seconds kLongestLook{0.5};

  Patience(Seconds limit, Seconds now) : limit_(limit), looked_(now) {}
  // Records the time of this call; returns true if the limit has been reached.
  bool over(Seconds now) {
    waited_ += std::clamp(now - looked_, Seconds(0), kLongestLook);
    looked_ = now;
    return waited_ >= limit_;
  }
  Seconds left() const { return std::max(Seconds(0), limit_ - waited_); }
  void restart(Seconds now) {
    waited_ = Seconds(0);
    looked_ = now;
  }

 private:
  Seconds limit_, looked_, waited_{0};
};

}  // namespace polyphony
