// The few TCP calls that exec/wire/peer_links.cpp and exec/wire/store.cpp need. IPv4 and IPv6; numeric
// addresses in, numeric addresses out.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shared/units.h"

namespace polyphony::exec {

// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();
  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

struct Listener {
  Socket socket;
  std::uint16_t port = 0;
};

// Port 0: a free one. Throws std::runtime_error, as all below, with the address and the system's
// words.
Listener listen_at(const std::string& address, std::uint16_t port = 0);
Socket connect_to(const std::string& host, std::uint16_t port, Seconds timeout);
// Non-blocking; invalid when nobody waits there (any more).
Socket accept_from(const Listener& listener);
// Waits a tenth of a second at most; true when one of the entries is ready.
bool ready_soon(std::vector<pollfd>& entries);
// Blocking, all bytes or an error. For hand-shakes.
void write_all(const Socket& socket, const void* data, std::size_t bytes);
// Non-blocking, and small packets leave at once.
void make_quick(const Socket& socket);

// This machine's address on the way to `host`: the one that others which also reach `host` can use.
std::string own_address_towards(const std::string& host, std::uint16_t port);
// Of a network interface ("eth0").
std::string address_of_interface(const std::string& name);

}  // namespace polyphony::exec
