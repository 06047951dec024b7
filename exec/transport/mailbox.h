// Messages to one rank from threads of the same process: whoever comes second copies straight from
// the sender's memory to the receiver's. A rendezvous: the sender too waits for the copy. A message
// marked `keep` is copied at once, and its sender goes on. Matched by (source, tag), first come
// first served. No tensors here: bytes.
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

  // Counts `arrivals` up now and down when the bytes are across. Throws InternalError when the two
  // ends' sizes differ.
  Ticket send(std::uint32_t source, std::uint64_t tag, const std::byte* data, std::size_t bytes,
              bool keep, const std::shared_ptr<Arrivals>& arrivals);
  Ticket receive(std::uint32_t source, std::uint64_t tag, std::byte* data, std::size_t bytes,
                 const std::shared_ptr<Arrivals>& arrivals);
  // Takes the message back when nobody has begun to copy it, else waits for the end of the copy:
  // afterwards its memory is not touched. Not for kept messages.
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

// Waits until nothing is left. On an abort or a time-out the caller must cancel its tickets.
Waited wait_all(Arrivals& arrivals, bool spin, const std::atomic<bool>& aborted, Seconds timeout);

}  // namespace polyphony::exec
