// The messages to one rank from threads of the same process, as bytes (no tensors). Sends and
// receives are matched by (source, tag), first come first served.
//
// A message is a rendezvous: the thread that arrives second copies directly from the sender's
// memory to the receiver's, and the sender waits for that copy. A message marked `keep` is copied
// at once, so that its sender continues.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "exec/transport/barrier.h"

namespace polyphony::exec {

// Counts the messages that a blocked call still waits for.
struct Arrivals {
  std::atomic<std::uint32_t> left{0};
};

class Mailbox {
 public:
  struct Item;
  using Ticket = std::shared_ptr<Item>;

  // Starts a send or a receive: increments `arrivals` now, and decrements it when the bytes have
  // been copied. Throws InternalError if the two ends' sizes differ.
  Ticket send(std::uint32_t source, std::uint64_t tag, const std::byte* data, std::size_t bytes,
              bool keep, const std::shared_ptr<Arrivals>& arrivals);
  Ticket receive(std::uint32_t source, std::uint64_t tag, std::byte* data, std::size_t bytes,
                 const std::shared_ptr<Arrivals>& arrivals);
  // Withdraws the message if its copy has not begun, else waits until the copy has ended.
  // Afterwards the message's memory is no longer accessed. Not for messages sent with `keep`.
  void cancel(const Ticket& ticket);

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;
  struct Queues {
    std::deque<Ticket> sends, receives;
  };
  Ticket post(const Key& key, const Ticket& item, bool sends);
  static void copy(Item& send, Item& receive);

  std::mutex mutex_;
  std::map<Key, Queues> queues_;
};

// Waits until no message is left. After an abort or a timeout the caller must cancel its tickets.
Waited wait_all(Arrivals& arrivals, bool spin, const std::atomic<bool>& aborted, Seconds timeout);

}  // namespace polyphony::exec
