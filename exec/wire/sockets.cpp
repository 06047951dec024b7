#include "exec/wire/sockets.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

#include "exec/system/process.h"
#include "shared/patience.h"

namespace polyphony::exec {

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

Addresses resolve(const std::string& host, std::uint16_t port, int type) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = type;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) throw std::runtime_error("cannot find host " + host + ": " + gai_strerror(error));
  return Addresses(found, &freeaddrinfo);
}

std::string numeric(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  const int error =
      getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  if (error != 0) throw std::runtime_error(std::string("getnameinfo: ") + gai_strerror(error));
  return text.data();
}

void set_blocking(const Socket& socket, bool blocking) {
  const int flags = fcntl(socket.get(), F_GETFL);
  const int wanted = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
  if (flags < 0 || fcntl(socket.get(), F_SETFL, wanted) != 0) fail("socket options");
}

// Connects with a timeout of our own: the system's connect() may take minutes if packets are
// dropped.
bool connected(const Socket& socket, const addrinfo& address, Patience& patience) {
  set_blocking(socket, false);
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return false;
    constexpr Seconds kAttempt{10};
    std::vector<pollfd> entry{{.fd = socket.get(), .events = POLLOUT, .revents = 0}};
    for (Patience attempt(kAttempt, steady_now()); !ready_soon(entry);) {
      if (!patience.over(steady_now()) && !attempt.over(steady_now())) continue;
      errno = ETIMEDOUT;
      return false;
    }
    int error = 0;
    socklen_t length = sizeof(error);
    if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return false;
    errno = error;
    if (error != 0) return false;
  }
  set_blocking(socket, true);
  return true;
}

}  // namespace

bool ready_soon(std::vector<pollfd>& entries) {
  constexpr int kSliceMilliseconds = 100;
  const int ready = poll(entries.data(), entries.size(), kSliceMilliseconds);
  if (ready < 0 && errno != EINTR) fail("poll");
  return ready > 0;
}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Listener listen_at(const std::string& address, std::uint16_t port) {
  const Addresses found = resolve(address, port, SOCK_STREAM);
  Listener listener;
  listener.socket = Socket(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int descriptor = listener.socket.get();
  constexpr int kBacklog = 1024;
  const int on = 1;  // allows a port whose last owner has just ended
  if (descriptor < 0 || setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(descriptor, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(descriptor, kBacklog) != 0) {
    fail("cannot listen at " + address + " port " + std::to_string(port));
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    fail("getsockname");
  listener.port =
      ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                        : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  return listener;
}

Socket connect_to(const std::string& host, std::uint16_t port, Seconds timeout) {
  Patience patience(timeout, steady_now());
  for (;;) {
    std::string error;
    try {
      const Addresses found = resolve(host, port, SOCK_STREAM);
      for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
        Socket made(socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (made.valid() && connected(made, *entry, patience)) return made;
        error = std::strerror(errno);
      }
    } catch (const std::runtime_error& unresolved) {
      error = unresolved.what();
    }
    if (patience.over(steady_now())) {
      throw std::runtime_error("cannot connect to " + host + ":" + std::to_string(port) + ": " +
                               error);
    }
    constexpr std::chrono::milliseconds kRetry{20};
    std::this_thread::sleep_for(kRetry);
  }
}

Socket accept_from(const Listener& listener) {
  return Socket(accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

void write_all(const Socket& socket, const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = send(socket.get(), next, bytes, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("write to a peer");
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void make_quick(const Socket& socket) {
  const int on = 1;
  set_blocking(socket, false);
  if (setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
    fail("socket options");
}

std::string own_address_towards(const std::string& host, std::uint16_t port) {
  const Addresses found = resolve(host, port, SOCK_DGRAM);
  const Socket probe(socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // Connecting a datagram socket sends nothing: it only picks the route.
  if (!probe.valid() || connect(probe.get(), found->ai_addr, found->ai_addrlen) != 0) {
    fail("no route to " + host);
  }
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  if (getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0)
    fail("getsockname");
  return numeric(reinterpret_cast<sockaddr*>(&own), length);
}

std::string address_of_interface(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) fail("getifaddrs");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (name != entry->ifa_name || entry->ifa_addr == nullptr) continue;
    if (entry->ifa_addr->sa_family == AF_INET) return numeric(entry->ifa_addr, sizeof(sockaddr_in));
    if (entry->ifa_addr->sa_family == AF_INET6)
      return numeric(entry->ifa_addr, sizeof(sockaddr_in6));
  }
  throw std::runtime_error("no network interface named " + name + " with an address");
}

}  // namespace polyphony::exec

// Replaces the C library's function in this program, LibTorch's calls included: numbers in place of
// names. LibTorch asks for the name of every address that it connects to, and a name server that
// does not answer delays each connection by five seconds and more.
extern "C" __attribute__((visibility("default"))) int getnameinfo(
    const sockaddr* address, socklen_t length, char* host, socklen_t host_length, char* service,
    socklen_t service_length, int flags) {
  static const auto real =
      reinterpret_cast<decltype(&getnameinfo)>(dlsym(RTLD_NEXT, "getnameinfo"));
  return real(address, length, host, host_length, service, service_length, flags | NI_NUMERICHOST);
}
