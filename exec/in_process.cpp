#include "exec/in_process.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "exec/barrier.h"
#include "exec/mailbox.h"
#include "exec/tensor_bytes.h"
#include "shared/error.h"

namespace polyphony::exec {

namespace {

// Up to here every member adds up the whole array: one meeting instead of two, at the price of
// `size` times the additions. Measured over 2 cores (tests/exec/transport_bench.cpp): the two cost
// the same at 16 KiB on 4 and on 8 threads.
constexpr std::size_t kSmallBytes = 16 << 10;

// What all members of a group share. Two generations: a member may start call n + 1 while others
// still read call n's.
struct GroupState {
  struct Call {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    Element element{};
    Reduction reduction{};
    std::vector<std::byte> copy;
  };

  GroupState(std::vector<Rank> members_, bool spin, const std::atomic<bool>& aborted)
      : members(std::move(members_)), barrier(static_cast<int>(members.size()), spin, aborted) {
    for (auto& generation : calls) generation.resize(members.size());
  }

  std::vector<Rank> members;
  Barrier barrier;
  std::array<std::vector<Call>, 2> calls;
  std::size_t joined = 0;
};

struct World {
  World(int ranks, Seconds timeout_)
      : size(ranks),
        timeout(timeout_),
        spin(std::thread::hardware_concurrency() >= static_cast<unsigned>(ranks)),
        mailboxes(static_cast<std::size_t>(ranks)) {
    std::vector<Rank> everyone;
    for (int rank = 0; rank < ranks; ++rank) everyone.emplace_back(static_cast<std::size_t>(rank));
    world = std::make_unique<GroupState>(everyone, spin, aborted);
  }

  void abort(Rank rank, const std::string& why) {
    const std::scoped_lock lock(mutex);
    if (aborted) return;
    culprit = rank;
    reason = why;
    aborted = true;  // sleepers look at it every 50 ms (exec/barrier.cpp)
  }

  // Throws unless the wait was a success.
  void require(Waited waited, Rank self, const std::string& where) {
    if (waited == Waited::done) return;
    if (waited == Waited::timed_out) {
      abort(self, "waited " + std::to_string(static_cast<int>(timeout.count())) + " s in " + where);
    }
    const std::scoped_lock lock(mutex);
    throw LostPeer(culprit,
                   "lost rank " + std::to_string(culprit.value) + ": it stopped: " + reason);
  }

  int size;
  Seconds timeout;
  bool spin;
  std::atomic<bool> aborted{false};
  std::deque<Mailbox> mailboxes;  // by destination
  std::unique_ptr<GroupState> world;
  std::mutex mutex;  // of what follows
  std::map<std::string, std::shared_ptr<GroupState>> groups;
  Rank culprit;
  std::string reason;
};

class InProcessCommunicator : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<World> world, std::shared_ptr<GroupState> state,
                        std::string name, std::size_t index)
      : world_(std::move(world)), state_(std::move(state)), name_(std::move(name)), index_(index) {}

  int index() const override { return static_cast<int>(index_); }
  int size() const override { return static_cast<int>(state_->members.size()); }

  void all_reduce(torch::Tensor& tensor, Reduction reduction) override {
    std::byte* const data = bytes_of(tensor);
    const std::size_t bytes = tensor.nbytes();
    if (size() == 1 || bytes == 0) return;
    auto& calls = state_->calls[generation_];
    generation_ ^= 1u;
    GroupState::Call& mine = calls[index_];
    mine.data = data;
    mine.bytes = bytes;
    mine.element = element_of(tensor);
    mine.reduction = reduction;
    if (bytes <= kSmallBytes) {
      mine.copy.assign(data, data + bytes);
      meet();
      add_up(calls, mine, false);
    } else {
      meet();
      add_up(calls, mine, true);
      state_->barrier.arrive_and_wait_at_any_rate();
    }
  }

 private:
  void meet() {
    world_->require(state_->barrier.arrive_and_wait(world_->timeout), state_->members[index_],
                    "all_reduce of group " + name_);
  }

  // Sliced: this member's part of everyone's tensor, in place. Else: the whole of the copies into
  // its own tensor.
  void add_up(const std::vector<GroupState::Call>& calls, const GroupState::Call& mine,
              bool sliced) const {
    const std::size_t width = size_of(mine.element);
    const std::size_t count = mine.bytes / width;
    const std::size_t begin = sliced ? count * index_ / calls.size() : 0;
    const std::size_t end = sliced ? count * (index_ + 1) / calls.size() : count;
    std::vector<const std::byte*> sources;
    std::vector<std::byte*> destinations;
    for (const GroupState::Call& call : calls) {
      POLYPHONY_CHECK(call.bytes == mine.bytes && call.element == mine.element &&
                          call.reduction == mine.reduction,
                      "members of group " << name_ << " call all_reduce on " << call.bytes
                                          << " and on " << mine.bytes
                                          << " bytes, or differ in type or reduction");
      sources.push_back((sliced ? call.data : call.copy.data()) + begin * width);
      if (sliced) destinations.push_back(call.data + begin * width);
    }
    if (!sliced) destinations.push_back(mine.data);
    reduce(mine.element, mine.reduction, sources, destinations, end - begin);
  }

  std::shared_ptr<World> world_;
  std::shared_ptr<GroupState> state_;
  std::string name_;
  std::size_t index_;
  std::size_t generation_ = 0;
};

class InProcessTransport : public Transport {
 public:
  InProcessTransport(std::shared_ptr<World> world, Rank rank)
      : world_(std::move(world)), rank_(rank) {}

  Rank rank() const override { return rank_; }
  int world_size() const override { return world_->size; }

  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    const auto position = std::find(members.begin(), members.end(), rank_);
    POLYPHONY_CHECK(position != members.end(),
                    "rank " << rank_.value << " is not in group " << name);
    std::shared_ptr<GroupState> state;
    {
      const std::scoped_lock lock(world_->mutex);
      auto& known = world_->groups[name];
      if (!known) known = std::make_shared<GroupState>(members, world_->spin, world_->aborted);
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

  std::shared_ptr<World> world_;
  Rank rank_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_in_process(int ranks, Seconds timeout) {
  POLYPHONY_CHECK(ranks > 0, "ranks " << ranks);
  const auto world = std::make_shared<World>(ranks, timeout);
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
