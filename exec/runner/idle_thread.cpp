#include "exec/runner/idle_thread.h"

#include <sys/resource.h>

#include "shared/error.h"

namespace polyphony::exec {
namespace {

constexpr Seconds kSlice{0.5};

}  // namespace

IdleThread::IdleThread(std::function<void()> ended)
    : ended_(std::move(ended)), thread_([this] { loop(); }) {}

void IdleThread::wait() {
  while (!free()) futex_wait(state_, kBusy, kSlice);
}

IdleThread::~IdleThread() {
  wait();
  state_.store(kLeaving, std::memory_order_release);
  futex_wake_all(state_);
  thread_.join();
}

void IdleThread::start(std::function<void()> job) {
  POLYPHONY_CHECK(free(), "the idle thread has a job");
  job_ = std::move(job);
  state_.store(kBusy, std::memory_order_release);
  futex_wake_all(state_);
}

void IdleThread::loop() {
  // On Linux this affects only this thread. Not SCHED_IDLE: with it, plans of a millisecond did not
  // finish while ranks used all cores (25 of 30 were late).
  constexpr int kNicest = 19;
  setpriority(PRIO_PROCESS, 0, kNicest);
  while (true) {
    const std::uint32_t state = state_.load(std::memory_order_acquire);
    if (state == kLeaving) return;
    if (state == kFree) {
      futex_wait(state_, kFree, kSlice);
      continue;
    }
    job_();
    job_ = nullptr;
    state_.store(kFree, std::memory_order_release);
    futex_wake_all(state_);
    ended_();
  }
}

}  // namespace polyphony::exec
