// A thread of the lowest priority (nice 19) that runs one job after another. It shares no lock with
// the threads that give it jobs and wait for their ends: it might not be scheduled for long while
// it holds one.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "exec/transport/barrier.h"

namespace polyphony::exec {

class IdleThread {
 public:
  // `ended` is called on this thread after each job.
  explicit IdleThread(std::function<void()> ended);
  ~IdleThread();  // waits for the current job
  IdleThread(const IdleThread&) = delete;
  IdleThread& operator=(const IdleThread&) = delete;

  bool free() const { return state_.load(std::memory_order_acquire) == kFree; }
  void wait();  // until free()
  // Starts a job. Requires free(). The job must not throw. What it wrote can be read once free()
  // returns true again.
  void start(std::function<void()> job);

 private:
  static constexpr std::uint32_t kFree = 0, kBusy = 1, kLeaving = 2;
  void loop();

  std::function<void()> ended_, job_;
  std::atomic<std::uint32_t> state_{kFree};
  std::thread thread_;  // last member: starts when all others are constructed
};

}  // namespace polyphony::exec
