// How long somebody has waited, as far as their own process ran meanwhile. Between two looks at most
// `kLongestLook` counts: a longer gap is a pause of the process itself (SIGSTOP, a suspended
// machine), during which those it waits for were paused too, or came and went unseen. So a pause of
// everybody uses up nobody's patience, whichever clock runs on through it.
//   To be asked several times a second with the time of one steady clock; asked more seldom, it
//   lasts longer than its limit.
#pragma once

#include <algorithm>

#include "shared/units.h"

namespace polyphony {

class Patience {
 public:
  static constexpr Seconds kLongestLook{0.5};

  Patience(Seconds limit, Seconds now) : limit_(limit), looked_(now) {}
  // Looks; true when the limit has been waited.
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
