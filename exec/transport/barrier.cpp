#include "exec/transport/barrier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "exec/system/process.h"
#include "shared/patience.h"

namespace polyphony::exec {

namespace {

using Clock = std::chrono::steady_clock;

// How long to poll before sleeping: about the cost of one sleep and wake-up.
constexpr std::chrono::microseconds kSpin{30};
// Sleeping threads wake this often to check for an abort, so that an abort needs no list of them.
constexpr Seconds kSlice{0.05};

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Seconds slice) {
  static_assert(sizeof(word) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(slice).count();
  const timespec limit{.tv_sec = nanoseconds / 1'000'000'000,
                       .tv_nsec = nanoseconds % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, &limit, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

Waited wait_for_change(std::atomic<std::uint32_t>& word, std::uint32_t seen, bool spin,
                       const std::atomic<bool>& aborted, Seconds timeout) {
  if (spin) {
    const auto start = Clock::now();
    while (Clock::now() - start < kSpin) {
      for (int i = 0; i < 16; ++i) {
        if (word.load(std::memory_order_acquire) != seen) return Waited::done;
        pause_core();
      }
    }
  }
  Patience patience(timeout, steady_now());
  while (word.load(std::memory_order_acquire) == seen) {
    if (aborted.load(std::memory_order_acquire)) return Waited::aborted;
    if (patience.over(steady_now())) return Waited::timed_out;
    futex_wait(word, seen, std::min(patience.left(), kSlice));
  }
  return Waited::done;
}

Waited Barrier::wait(const std::atomic<bool>& aborted, Seconds timeout) {
  std::uint32_t seen = generation_.load(std::memory_order_acquire);
  if (seen % 2 != 0) return Waited::aborted;
  const std::uint32_t broken = seen + 1;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    const bool passed =
        generation_.compare_exchange_strong(seen, seen + 2, std::memory_order_acq_rel);
    futex_wake_all(generation_);
    return passed ? Waited::done : Waited::aborted;
  }
  const Waited waited = wait_for_change(generation_, seen, spin_, aborted, timeout);
  if (waited != Waited::done &&
      generation_.compare_exchange_strong(seen, broken, std::memory_order_acq_rel)) {
    futex_wake_all(generation_);
    return waited;
  }
  return generation_.load(std::memory_order_acquire) == broken ? Waited::aborted : Waited::done;
}

Waited Barrier::arrive_and_wait(Seconds timeout) {
  if (aborted_.load(std::memory_order_acquire)) return Waited::aborted;
  return wait(aborted_, timeout);
}

void Barrier::arrive_and_wait_at_any_rate() {
  static const std::atomic<bool> never{false};
  constexpr Seconds kYear{3.2e7};
  wait(never, kYear);
}

}  // namespace polyphony::exec
