// Work beside a thread's own: what waits for other ranks, while this one computes.
#pragma once

#include <ATen/ThreadLocalState.h>

#include <future>
#include <utility>

namespace polyphony::exec {

// One job at a time, on a thread of its own but as this one would run it: LibTorch's modes go with it.
// Whatever the job uses must be declared before this, which waits for it at the latest when it ends.
class Beside {
 public:
  template <class Job>
  void start(Job job) {
    job_ = std::async(std::launch::async, [state = at::ThreadLocalState(), job = std::move(job)] {
      const at::ThreadLocalStateGuard as_there(state);
      job();
    });
  }
  // Throws what the job threw.
  void wait() {
    if (job_.valid()) job_.get();
  }

 private:
  std::future<void> job_;
};

}  // namespace polyphony::exec
