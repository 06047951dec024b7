// Calls that nothing can wake (LibTorch's store, Gloo's connecting), made on a thread of their own,
// so that the caller can give them up.
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

// What `make` returns or throws; nothing once `aborted`, or after `timeout`. The thread that was
// given up still runs: `make` must hold what it uses, and the process is to be left without
// destructors (leave_after()).
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
