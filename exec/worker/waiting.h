// How long threads of a training run waited for something.
#pragma once

#include <atomic>
#include <functional>

#include "exec/system/process.h"
#include "shared/units.h"

namespace polyphony::exec {

class Waiting {
 public:
  // Runs `wait`, and adds how long it took. May be called on any thread.
  void during(const std::function<void()>& wait) {
    const Seconds begin = steady_now();
    wait();
    seconds_ += (steady_now() - begin).count();
  }
  // Returns the sum, and begins a new one.
  Seconds take() { return Seconds(seconds_.exchange(0)); }

 private:
  std::atomic<double> seconds_{0};
};

}  // namespace polyphony::exec
