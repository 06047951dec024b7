// A thread of the lowest priority (nice 19): one job after another. It shares no lock with who gives it
// jobs and looks for their ends, for it may not get on while it holds one.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "exec/transport/barrier.h"

namespace polyphony::exec {

class IdleThread {
 public:
  // `ended` is called on the thread after each job.
  explicit IdleThread(std::function<void()> ended);
  ~IdleThread();  // after its job
  IdleThread(const IdleThread&) = delete;
  IdleThread& operator=(const IdleThread&) = delete;

  bool free() const { return state_.load(std::memory_order_acquire) == kFree; }
  // When free. Must not throw. What it wrote can be read when the thread is free again.
  void start(std::function<void()> job);

 private:
  static constexpr std::uint32_t kFree = 0, kBusy = 1, kLeaving = 2;
  void loop();

  std::function<void()> ended_, job_;
  std::atomic<std::uint32_t> state_{kFree};
  std::thread thread_;  // last: starts when the rest is there
};

}  // namespace polyphony::exec
