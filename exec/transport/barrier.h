// Threads of one process meeting: Linux futexes rather than std::condition_variable, because N
// woken threads need not queue for a mutex.
//   Spins for some microseconds first when every thread can have a core; never when threads
//   outnumber cores.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "shared/units.h"

namespace polyphony::exec {

enum class Waited : std::uint8_t { done, aborted, timed_out };

// Blocks while `word` is `seen`, until woken or until `slice` has passed; may return early.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Seconds slice);
void futex_wake_all(std::atomic<std::uint32_t>& word);

// Blocks while `word` is `seen`. `spin`: look for a while before sleeping.
Waited wait_for_change(std::atomic<std::uint32_t>& word, std::uint32_t seen, bool spin,
                       const std::atomic<bool>& aborted, Seconds timeout);

class Barrier {
 public:
  Barrier(int size, bool spin, const std::atomic<bool>& aborted)
      : size_(static_cast<std::uint32_t>(size)), spin_(spin), aborted_(aborted) {}
  // What the others wrote before they arrived is visible after it returns. Either all pass or,
  // after an abort or a time-out, none does, now or later.
  Waited arrive_and_wait(Seconds timeout);
  // For a second meeting while the others may still touch this thread's memory: not to be left
  // before all are there.
  void arrive_and_wait_at_any_rate();

 private:
  Waited wait(const std::atomic<bool>& aborted, Seconds timeout);

  std::uint32_t size_;
  bool spin_;
  const std::atomic<bool>& aborted_;
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> generation_{0};  // two more for each meeting; odd: broken
};

}  // namespace polyphony::exec
