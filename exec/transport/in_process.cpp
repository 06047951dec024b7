#include "exec/transport/in_process.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "exec/transport/in_process_world.h"
#include "exec/transport/tensor_bytes.h"
#include "shared/error.h"

namespace polyphony::exec {

InProcessWorld::InProcessWorld(int ranks, Seconds timeout_)
    : size(ranks),
      timeout(timeout_),
      spin(std::thread::hardware_concurrency() >= static_cast<unsigned>(ranks)),
      mailboxes(static_cast<std::size_t>(ranks)) {
  std::vector<Rank> everyone;
  for (int rank = 0; rank < ranks; ++rank) everyone.emplace_back(static_cast<std::size_t>(rank));
  world = std::make_unique<InProcessGroup>(everyone, spin, aborted);
}

void InProcessWorld::abort(Rank rank, const std::string& why) {
  const std::scoped_lock lock(mutex);
  if (aborted) return;
  culprit = rank;
  reason = why;
  aborted = true;  // sleeping threads check it every 50 ms (exec/transport/barrier.cpp)
}

void InProcessWorld::require(Waited waited, Rank self, const std::string& where) {
  if (waited == Waited::done) return;
  if (waited == Waited::timed_out) {
    abort(self, "waited " + std::to_string(static_cast<int>(timeout.count())) + " s in " + where);
  }
  const std::scoped_lock lock(mutex);
  throw LostPeer(culprit, "lost rank " + std::to_string(culprit.value) + ": it stopped: " + reason);
}

namespace {

class InProcessTransport : public Transport {
 public:
  InProcessTransport(std::shared_ptr<InProcessWorld> world, Rank rank)
      : world_(std::move(world)), rank_(rank) {}

  Rank rank() const override { return rank_; }
  int world_size() const override { return world_->size; }

  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    const auto position = std::find(members.begin(), members.end(), rank_);
    POLYPHONY_CHECK(position != members.end(),
                    "rank " << rank_.value << " is not in group " << name);
    std::shared_ptr<InProcessGroup> state;
    {
      const std::scoped_lock lock(world_->mutex);
      auto& known = world_->groups[name];
      if (!known) known = std::make_shared<InProcessGroup>(members, world_->spin, world_->aborted);
      POLYPHONY_CHECK(known->members == members, "ranks disagree on the members of group " << name);
      state = known;
      if (++state->joined == members.size()) world_->groups.erase(name);
    }
    world_->require(state->barrier.arrive_and_wait(world_->timeout), rank_,
                    "joining group " + name);
    return std::make_unique<InProcessCommunicator>(
        world_, state, name, static_cast<std::size_t>(position - members.begin()));
  }

  void exchange(const std::vector<Transfer>& transfers) override {
    const auto arrivals = std::make_shared<Arrivals>();
    std::vector<std::pair<Mailbox*, Mailbox::Ticket>> posted;
    try {
      for (const Transfer& transfer : transfers) post(transfer, arrivals, posted);
      world_->require(wait_all(*arrivals, world_->spin, world_->aborted, world_->timeout), rank_,
                      "a message");
    } catch (...) {
      for (auto& [mailbox, ticket] : posted) mailbox->cancel(ticket);
      throw;
    }
  }

  void barrier() override {
    world_->require(world_->world->barrier.arrive_and_wait(world_->timeout), rank_, "barrier");
  }

  void post(const std::string& key, const std::string& bytes) override {
    {
      const std::scoped_lock lock(world_->mutex);
      POLYPHONY_CHECK(world_->letters.emplace(key, bytes).second, key << " is posted already");
    }
    world_->posted.fetch_add(1, std::memory_order_release);
    futex_wake_all(world_->posted);
  }
  std::string fetch(const std::string& key) override {
    while (true) {
      const std::uint32_t seen = world_->posted.load(std::memory_order_acquire);
      {
        const std::scoped_lock lock(world_->mutex);
        if (auto letter = world_->letters.extract(key)) return std::move(letter.mapped());
      }
      world_->require(
          wait_for_change(world_->posted, seen, false, world_->aborted, world_->timeout), rank_,
          "waiting for " + key);
    }
  }

  void abort(const std::string& reason) override { world_->abort(rank_, reason); }

 private:
  void post(const Transfer& transfer, const std::shared_ptr<Arrivals>& arrivals,
            std::vector<std::pair<Mailbox*, Mailbox::Ticket>>& posted) {
    check_tag(transfer, world_->size);
    std::byte* const data = bytes_of(transfer.tensor);
    const std::size_t bytes = transfer.tensor.nbytes();
    if (bytes == 0) return;
    const bool to_self = transfer.peer == rank_;
    const Rank source = transfer.sends ? rank_ : transfer.peer;
    const Rank destination = transfer.sends ? transfer.peer : rank_;
    Mailbox& mailbox = world_->mailboxes[destination.value];
    if (!transfer.sends) {
      posted.emplace_back(&mailbox,
                          mailbox.receive(source.value, transfer.tag, data, bytes, arrivals));
    } else if (to_self) {
      mailbox.send(source.value, transfer.tag, data, bytes, true, nullptr);
    } else {
      posted.emplace_back(&mailbox,
                          mailbox.send(source.value, transfer.tag, data, bytes, false, arrivals));
    }
  }

  std::shared_ptr<InProcessWorld> world_;
  Rank rank_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_in_process(int ranks, Seconds timeout) {
  POLYPHONY_CHECK(ranks > 0, "ranks " << ranks);
  const auto world = std::make_shared<InProcessWorld>(ranks, timeout);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int rank = 0; rank < ranks; ++rank) {
    transports.push_back(
        std::make_unique<InProcessTransport>(world, Rank(static_cast<std::size_t>(rank))));
  }
  return transports;
}

void run_in_process(int ranks, const std::function<void(Transport&)>& body, Seconds timeout) {
  const auto transports = make_in_process(ranks, timeout);
  std::mutex mutex;
  std::exception_ptr cause, consequence;
  const auto run = [&](Transport& transport) {
    try {
      body(transport);
    } catch (const LostPeer&) {
      const std::scoped_lock lock(mutex);
      if (!consequence) consequence = std::current_exception();
    } catch (const std::exception& error) {
      const std::scoped_lock lock(mutex);
      if (!cause) cause = std::current_exception();
      transport.abort(error.what());
    }
  };
  std::vector<std::jthread> threads;
  for (const auto& transport : transports) threads.emplace_back(run, std::ref(*transport));
  threads.clear();
  if (cause) std::rethrow_exception(cause);
  if (consequence) std::rethrow_exception(consequence);
}

}  // namespace polyphony::exec
