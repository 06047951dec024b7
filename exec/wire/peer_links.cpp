#include "exec/wire/peer_links.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <sstream>

#include "exec/system/process.h"
#include "shared/error.h"
#include "shared/patience.h"

namespace polyphony::exec {

namespace {

using Clock = std::chrono::steady_clock;

// How long to poll before sleeping: about the cost of one sleep and wake-up.
constexpr std::chrono::microseconds kSpin{30};
// A sleeping thread wakes this often to check for an abort, so that an abort needs no list of
// threads.
constexpr int kSliceMilliseconds = 50;

// The first bytes on a connection: the connecting member, and the listener's token as proof.
struct Hello {
  std::uint64_t token = 0, index = 0;
};

struct Header {
  std::uint32_t sequence = 0;
  std::uint32_t kind = 0;
  std::uint64_t bytes = 0;
};

// Returns the part of {header, payload} after its first `done` bytes.
struct Rest {
  std::array<iovec, 2> parts{};
  std::size_t count = 0;
  Rest(void* header, void* payload, std::size_t bytes, std::size_t done) {
    if (done < sizeof(Header)) {
      parts[count++] = {static_cast<char*>(header) + done, sizeof(Header) - done};
    }
    const std::size_t skip = done < sizeof(Header) ? 0 : done - sizeof(Header);
    if (skip < bytes) parts[count++] = {static_cast<char*>(payload) + skip, bytes - skip};
  }
  msghdr message() {
    msghdr result{};
    result.msg_iov = parts.data();
    result.msg_iovlen = count;
    return result;
  }
};

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

std::uint64_t random_token() {
  std::random_device device;  // only keeps other processes out; does not affect results
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

struct PeerLinks::Progress {
  Header out_header, in_header;
  std::size_t sent = 0, received = 0;
  bool all_sent = false, all_received = false;
};

PeerLinks::PeerLinks(const std::vector<Rank>& members, std::size_t index, const Meeting& meeting,
                     bool spin, const std::atomic<bool>& aborted, Seconds timeout)
    : PeerExchange(index, members.size()),
      members_(members),
      spin_(spin),
      aborted_(aborted),
      timeout_(timeout),
      sockets_(members.size()) {
  const Listener listener = listen_at(meeting.own_address);
  const std::uint64_t token = random_token();
  meeting.set(std::to_string(index), meeting.own_address + " " + std::to_string(listener.port) +
                                         " " + std::to_string(token));
  for (std::size_t peer = 0; peer < index; ++peer) {
    std::istringstream text(meeting.get(std::to_string(peer)));
    std::string address;
    std::uint16_t port = 0;
    Hello hello{.token = 0, .index = index};
    text >> address >> port >> hello.token;
    sockets_[peer] = connect_to(address, port, timeout);
    write_all(sockets_[peer], &hello, sizeof(hello));
  }
  receive_members(listener, token);
  for (std::size_t peer = 0; peer < sockets_.size(); ++peer) {
    if (peer != index) make_quick(sockets_[peer]);
  }
}

// Accepts the connections of the other members. A connection must first send a valid Hello; one
// that sends nothing or something else, or closes, is not a member's, and does not delay the
// others.
void PeerLinks::receive_members(const Listener& listener, std::uint64_t token) {
  struct Guest {
    Socket socket;
    Hello hello;
    std::size_t got = 0;
    bool gone = false;
  };
  std::vector<Guest> guests;
  const auto greet = [&](Guest& guest) {
    auto* const to = reinterpret_cast<char*>(&guest.hello) + guest.got;
    const ssize_t got = recv(guest.socket.get(), to, sizeof(Hello) - guest.got, MSG_DONTWAIT);
    if (got < 0 && would_block()) return;
    guest.gone = got <= 0;
    guest.got += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    if (guest.gone || guest.got < sizeof(Hello)) return;
    guest.gone = true;
    const auto [theirs, from] = guest.hello;
    if (theirs == token && from > index() && from < sockets_.size() && !sockets_[from].valid())
      sockets_[from] = std::move(guest.socket);
  };
  const auto missing = [&] {
    for (std::size_t peer = index() + 1; peer < sockets_.size(); ++peer)
      if (!sockets_[peer].valid()) return true;
    return false;
  };
  for (Patience patience(timeout_, steady_now()); missing();) {
    if (aborted_.load(std::memory_order_acquire)) throw LostPeer(Rank(), "the run was aborted");
    if (patience.over(steady_now()))
      throw std::runtime_error("waiting for a peer to connect: no answer in time");
    std::vector<pollfd> entries{{.fd = listener.socket.get(), .events = POLLIN, .revents = 0}};
    for (const Guest& guest : guests)
      entries.push_back({.fd = guest.socket.get(), .events = POLLIN, .revents = 0});
    if (!ready_soon(entries)) continue;
    if (entries[0].revents != 0) {
      if (Socket accepted = accept_from(listener); accepted.valid())
        guests.push_back({.socket = std::move(accepted), .hello = {}});
    }
    for (Guest& guest : guests) greet(guest);
    std::erase_if(guests, [](const Guest& guest) { return guest.gone; });
  }
}

// Sends as much as fits; returns true if any bytes were sent.
bool PeerLinks::push(std::size_t peer, const Parcel& parcel, Progress& progress) {
  if (progress.all_sent) return false;
  Rest rest(&progress.out_header, const_cast<std::byte*>(parcel.out), parcel.out_bytes,
            progress.sent);
  const msghdr message = rest.message();
  const ssize_t moved = sendmsg(sockets_[peer].get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (moved < 0) {
    if (would_block()) return false;
    throw LostPeer(members_[peer], "lost rank " + std::to_string(members_[peer].value) +
                                       ": it closed its connection");
  }
  progress.sent += static_cast<std::size_t>(moved);
  progress.all_sent = progress.sent == sizeof(Header) + parcel.out_bytes;
  return moved > 0;
}

bool PeerLinks::pull(std::size_t peer, const Parcel& parcel, Progress& progress) {
  if (progress.all_received) return false;
  Rest rest(&progress.in_header, parcel.in, parcel.in_bytes, progress.received);
  msghdr message = rest.message();
  const ssize_t moved = recvmsg(sockets_[peer].get(), &message, MSG_DONTWAIT);
  if (moved < 0 && would_block()) return false;
  if (moved <= 0) {
    throw LostPeer(members_[peer], "lost rank " + std::to_string(members_[peer].value) +
                                       ": it closed its connection");
  }
  const bool header_was_known = progress.received >= sizeof(Header);
  progress.received += static_cast<std::size_t>(moved);
  if (!header_was_known && progress.received >= sizeof(Header)) {
    const Header& theirs = progress.in_header;
    const Header& ours = progress.out_header;
    POLYPHONY_CHECK(theirs.sequence == ours.sequence && theirs.kind == ours.kind &&
                        theirs.bytes == parcel.in_bytes,
                    "rank " << members_[peer].value << " is in another collective (number "
                            << theirs.sequence << ", kind " << theirs.kind << ", " << theirs.bytes
                            << " bytes) than rank " << members_[index()].value << " (number "
                            << ours.sequence << ", kind " << ours.kind << ", " << parcel.in_bytes
                            << " bytes)");
  }
  progress.all_received = progress.received == sizeof(Header) + parcel.in_bytes;
  return true;
}

void PeerLinks::sleep(const std::vector<Progress>& progress) const {
  std::vector<pollfd> entries;
  for (std::size_t peer = 0; peer < progress.size(); ++peer) {
    if (peer == index()) continue;
    int events = 0;
    if (!progress[peer].all_received) events |= POLLIN;
    if (!progress[peer].all_sent) events |= POLLOUT;
    if (events == 0) continue;
    entries.push_back(
        {.fd = sockets_[peer].get(), .events = static_cast<short>(events), .revents = 0});
  }
  poll(entries.data(), entries.size(), kSliceMilliseconds);
}

void PeerLinks::exchange(const std::vector<Parcel>& parcels, std::uint32_t kind) {
  std::vector<Progress> progress(parcels.size());
  ++sequence_;
  for (std::size_t peer = 0; peer < parcels.size(); ++peer) {
    progress[peer].out_header = {
        .sequence = sequence_, .kind = kind, .bytes = parcels[peer].out_bytes};
  }
  Patience patience(timeout_, steady_now());
  auto last_move = Clock::now();
  for (;;) {
    bool moved = false, finished = true;
    for (std::size_t peer = 0; peer < parcels.size(); ++peer) {
      if (peer == index()) continue;
      moved |= push(peer, parcels[peer], progress[peer]);
      moved |= pull(peer, parcels[peer], progress[peer]);
      finished = finished && progress[peer].all_sent && progress[peer].all_received;
    }
    if (finished) return;
    const auto now = Clock::now();
    if (moved) {
      last_move = now;
      continue;
    }
    if (aborted_.load(std::memory_order_acquire)) throw LostPeer(Rank(), "the run was aborted");
    if (patience.over(Seconds(now.time_since_epoch())))
      throw LostPeer(Rank(), "a collective did not end in time");
    if (!spin_ || now - last_move > kSpin) sleep(progress);
  }
}

}  // namespace polyphony::exec
