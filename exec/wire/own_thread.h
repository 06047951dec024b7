// Runs a blocking call that cannot be interrupted (LibTorch's store, Gloo's connection setup) on a
// thread of its own, so that the caller can abandon it.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "exec/transport/barrier.h"
#include "shared/units.h"

namespace polyphony::exec {

// Returns or throws what `make` does, or returns nullopt once `aborted` is set or `timeout` has
// passed. An abandoned thread keeps running: `make` must own what it uses, and the process must
// then exit without destructors (leave_after()).
template <class Make>
auto on_own_thread(const Make& make, const std::atomic<bool>& aborted, Seconds timeout)
    -> std::optional<decltype(make())> {
  struct Result {
    std::atomic<std::uint32_t> ready{0};
    std::optional<decltype(make())> made;
    std::exception_ptr error;
  };
  const auto result = std::make_shared<Result>();
  std::thread thread([result, make] {
    try {
      result->made.emplace(make());
    } catch (...) {
      result->error = std::current_exception();
    }
    result->ready.store(1, std::memory_order_release);
    futex_wake_all(result->ready);
  });
  if (wait_for_change(result->ready, 0, false, aborted, timeout) != Waited::done) {
    thread.detach();
    return std::nullopt;
  }
  thread.join();
  if (result->error) std::rethrow_exception(result->error);
  return std::move(result->made);
}

}  // namespace polyphony::exec
