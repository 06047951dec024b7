// Chooses ports for worlds of ranks in tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <random>

#include "exec/wire/sockets.h"

namespace polyphony::exec::testing {

// Returns a port that is free now, and that no outgoing connection of another test takes before
// rank 0 listens at it: below those that Linux hands out, from 32768 on (ip(7),
// ip_local_port_range).
inline std::uint16_t free_port() {
  constexpr unsigned kFirst = 20000, kPorts = 12000, kTries = 1000;
  static std::atomic<unsigned> next{std::random_device{}()};
  for (unsigned i = 0; i < kTries; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirst + next++ % kPorts);
    try {
      return listen_at("127.0.0.1", port).port;
    } catch (const std::exception&) {  // in use
    }
  }
  return listen_at("127.0.0.1").port;
}

}  // namespace polyphony::exec::testing
