// A barrier for the threads of one process, and the wait that it is built on. It uses Linux futexes
// instead of std::condition_variable, so that N woken threads need not queue for a mutex.
//
// A waiting thread first spins for some microseconds if every thread can have a core, and never if
// threads outnumber cores.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "shared/units.h"

namespace polyphony::exec {

enum class Waited : std::uint8_t { done, aborted, timed_out };

// Blocks while `word` equals `seen`, until woken or until `slice` has passed; may return early.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Seconds slice);
void futex_wake_all(std::atomic<std::uint32_t>& word);

// Blocks until `word` differs from `seen`, `aborted` is set, or `timeout` has passed. `spin`: poll
// for a while before sleeping.
Waited wait_for_change(std::atomic<std::uint32_t>& word, std::uint32_t seen, bool spin,
                       const std::atomic<bool>& aborted, Seconds timeout);

class Barrier {
 public:
  Barrier(int size, bool spin, const std::atomic<bool>& aborted)
      : size_(static_cast<std::uint32_t>(size)), spin_(spin), aborted_(aborted) {}
  // Waits until all threads have arrived. What the other threads wrote before they arrived is
  // visible when it returns. Either all threads pass or, after an abort or a timeout, none does,
  // now or later.
  Waited arrive_and_wait(Seconds timeout);
  // Waits until all threads have arrived, without a timeout and despite an abort. For the second
  // barrier of a collective: before it, other threads may still access this thread's memory.
  void arrive_and_wait_at_any_rate();

 private:
  Waited wait(const std::atomic<bool>& aborted, Seconds timeout);

  std::uint32_t size_;
  bool spin_;
  const std::atomic<bool>& aborted_;
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> generation_{0};  // grows by two per barrier; odd: broken
};

}  // namespace polyphony::exec
