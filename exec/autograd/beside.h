// Work beside a thread's own: what waits for other ranks, while this one computes. On a device the job is queued at
// once, before what comes next: a stream of its own could be one that waits for others.
#pragma once

#include <ATen/ThreadLocalState.h>

#include <future>
#include <utility>

#include "exec/torch_pch.h"

namespace polyphony::exec {

// One job at a time, on a thread of its own but as this one would run it: LibTorch's modes go with it.
// Whatever the job uses must be declared before this, which waits for it at the latest when it ends.
class Beside {
 public:
  explicit Beside(torch::Device device) : device_(device) {}

  template <class Job>
  void start(Job job) {
    if (!device_.is_cpu()) return job();
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
  torch::Device device_;
  std::future<void> job_;
};

}  // namespace polyphony::exec
