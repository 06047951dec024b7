#include "exec/transport/mailbox.h"

#include <algorithm>
#include <cstring>

#include "shared/error.h"

namespace polyphony::exec {

struct Mailbox::Item {
  const std::byte* from = nullptr;  // set for sends
  std::byte* to = nullptr;          // set for receives
  std::size_t bytes = 0;
  std::vector<std::byte> kept;  // a copy of the sender's bytes, if the sender did not wait
  std::shared_ptr<Arrivals> arrivals;
  Key key;
  bool sends = false;
  std::atomic<std::uint32_t> done{0};
};

void Mailbox::copy(Item& send, Item& receive) {
  if (send.bytes > 0) std::memcpy(receive.to, send.from, send.bytes);
  for (Item* item : {&send, &receive}) {
    const std::shared_ptr<Arrivals> arrivals = item->arrivals;
    item->done.store(1, std::memory_order_release);
    if (arrivals && arrivals->left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      futex_wake_all(arrivals->left);
    }
  }
}

// Returns the other end if it has already arrived; else puts the item in its queue.
Mailbox::Ticket Mailbox::post(const Key& key, const Ticket& item, bool sends) {
  item->key = key;
  item->sends = sends;
  if (item->arrivals) item->arrivals->left.fetch_add(1, std::memory_order_acq_rel);
  const std::scoped_lock lock(mutex_);
  Queues& queues = queues_[key];
  auto& others = sends ? queues.receives : queues.sends;
  if (others.empty()) {
    (sends ? queues.sends : queues.receives).push_back(item);
    return nullptr;
  }
  const Ticket other = others.front();
  POLYPHONY_CHECK(other->bytes == item->bytes,
                  "message from rank " << key.first << " tag " << key.second << ": "
                                       << (sends ? item : other)->bytes << " bytes sent, "
                                       << (sends ? other : item)->bytes << " expected");
  others.pop_front();
  if (queues.sends.empty() && queues.receives.empty()) queues_.erase(key);
  return other;
}

Mailbox::Ticket Mailbox::send(std::uint32_t source, std::uint64_t tag, const std::byte* data,
                              std::size_t bytes, bool keep,
                              const std::shared_ptr<Arrivals>& arrivals) {
  const auto item = std::make_shared<Item>();
  item->bytes = bytes;
  item->from = data;
  if (keep) {
    item->kept.assign(data, data + bytes);
    item->from = item->kept.data();
  } else {
    item->arrivals = arrivals;
  }
  if (const Ticket receiver = post({source, tag}, item, true)) copy(*item, *receiver);
  return item;
}

Mailbox::Ticket Mailbox::receive(std::uint32_t source, std::uint64_t tag, std::byte* data,
                                 std::size_t bytes, const std::shared_ptr<Arrivals>& arrivals) {
  const auto item = std::make_shared<Item>();
  item->bytes = bytes;
  item->to = data;
  item->arrivals = arrivals;
  if (const Ticket sender = post({source, tag}, item, false)) copy(*sender, *item);
  return item;
}

void Mailbox::cancel(const Ticket& ticket) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = queues_.find(ticket->key);
    if (found != queues_.end()) {
      auto& queue = ticket->sends ? found->second.sends : found->second.receives;
      const auto position = std::find(queue.begin(), queue.end(), ticket);
      if (position != queue.end()) {
        queue.erase(position);
        return;
      }
    }
  }
  while (ticket->done.load(std::memory_order_acquire) == 0) {
    futex_wait(ticket->done, 0, Seconds(0.001));
  }
}

Waited wait_all(Arrivals& arrivals, bool spin, const std::atomic<bool>& aborted, Seconds timeout) {
  for (;;) {
    const std::uint32_t left = arrivals.left.load(std::memory_order_acquire);
    if (left == 0) return Waited::done;
    const Waited waited = wait_for_change(arrivals.left, left, spin, aborted, timeout);
    if (waited != Waited::done) return waited;
  }
}

}  // namespace polyphony::exec
