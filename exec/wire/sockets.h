// The TCP calls that exec/wire/peer_links.cpp and exec/wire/store.cpp need, for IPv4 and IPv6. They
// return addresses in numeric form. Unless stated otherwise they throw std::runtime_error, with the
// address and the system's error text.
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

// Listens at the address. Port 0 chooses a free port.
Listener listen_at(const std::string& address, std::uint16_t port = 0);
// Connects to host:port, waiting at most `timeout` for the connection.
Socket connect_to(const std::string& host, std::uint16_t port, Seconds timeout);
// Accepts a pending connection without blocking; returns an invalid socket if there is none.
Socket accept_from(const Listener& listener);
// Waits for at most 0.1 s; returns true if one of the entries is ready.
bool ready_soon(std::vector<pollfd>& entries);
// Writes all bytes or throws; blocks. For handshakes.
void write_all(const Socket& socket, const void* data, std::size_t bytes);
// Makes the socket non-blocking, and disables delayed sending of small packets (TCP_NODELAY).
void make_quick(const Socket& socket);

// Returns this machine's address on its route to `host`, which other machines that reach `host` can
// use, too.
std::string own_address_towards(const std::string& host, std::uint16_t port);
// Returns the address of a network interface ("eth0").
std::string address_of_interface(const std::string& name);

}  // namespace polyphony::exec
