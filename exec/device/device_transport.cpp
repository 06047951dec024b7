#include "exec/device/device_transport.h"

#include <c10/core/Event.h>

#include <algorithm>
#include <chrono>

#include "exec/device/announced_groups.h"
#include "exec/on_device.h"
#include "exec/transport/staged.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Passes device tensors to the device's communicator, and host tensors to the host's.
class TwoWays : public Communicator {
 public:
  using Beside = std::function<void()>;
  // `device`: null until `make` makes it, at the first call that needs it.
  TwoWays(std::unique_ptr<Communicator> host, std::unique_ptr<Communicator> device,
          std::function<std::unique_ptr<Communicator>()> make,
          std::function<void(const std::function<void()>&)> guarded)
      : host_(std::move(host)),
        device_(std::move(device)),
        make_(std::move(make)),
        guarded_(std::move(guarded)) {}
  int index() const override { return host_->index(); }
  int size() const override { return host_->size(); }
  void all_reduce(Tensor& tensor, Reduction reduction) override {
    if (tensor.is_cpu()) return host_->all_reduce(tensor, reduction);
    on_device([&](Communicator& device) { device.all_reduce(tensor, reduction); });
  }
  void all_gather(const Tensor& mine, Tensor& all,
                  const std::vector<std::int64_t>& counts) override {
    if (all.is_cpu()) return host_->all_gather(mine, all, counts);
    on_device([&](Communicator& device) { device.all_gather(mine, all, counts); });
  }
  void reduce_scatter(const Tensor& all, Tensor& mine,
                      const std::vector<std::int64_t>& counts) override {
    if (all.is_cpu()) return host_->reduce_scatter(all, mine, counts);
    on_device([&](Communicator& device) { device.reduce_scatter(all, mine, counts); });
  }
  void all_reduce_beside(Tensor& tensor, Reduction reduction, const Beside& beside) override {
    if (tensor.is_cpu()) return host_->all_reduce_beside(tensor, reduction, beside);
    guarded_beside(beside, [&](Communicator& device, const Beside& own) {
      device.all_reduce_beside(tensor, reduction, own);
    });
  }
  void reduce_scatter_beside(const Tensor& all, Tensor& mine,
                             const std::vector<std::int64_t>& counts,
                             const Beside& beside) override {
    if (all.is_cpu()) return host_->reduce_scatter_beside(all, mine, counts, beside);
    guarded_beside(beside, [&](Communicator& device, const Beside& own) {
      device.reduce_scatter_beside(all, mine, counts, own);
    });
  }
  void all_gather_beside(const Tensor& mine, Tensor& all, const std::vector<std::int64_t>& counts,
                         const Beside& beside) override {
    if (all.is_cpu()) return host_->all_gather_beside(mine, all, counts, beside);
    guarded_beside(beside, [&](Communicator& device, const Beside& own) {
      device.all_gather_beside(mine, all, counts, own);
    });
  }
  void all_to_all(const Tensor& send, Tensor& receive, const std::vector<std::int64_t>& sent,
                  const std::vector<std::int64_t>& received) override {
    if (send.is_cpu()) return host_->all_to_all(send, receive, sent, received);
    on_device([&](Communicator& device) { device.all_to_all(send, receive, sent, received); });
  }
  void all_to_all_beside(const Tensor& send, Tensor& receive, const std::vector<std::int64_t>& sent,
                         const std::vector<std::int64_t>& received, const Beside& beside) override {
    if (send.is_cpu()) return host_->all_to_all_beside(send, receive, sent, received, beside);
    guarded_beside(beside, [&](Communicator& device, const Beside& own) {
      device.all_to_all_beside(send, receive, sent, received, own);
    });
  }

 private:
  void on_device(const std::function<void(Communicator&)>& call) {
    if (!device_) device_ = make_();
    guarded_([&] { call(*device_); });
  }
  // An exception that `beside` throws is not the call's own, and must not be reported as a lost
  // peer.
  template <class Call>
  void guarded_beside(const Beside& beside, const Call& call) {
    std::exception_ptr thrown;
    on_device([&](Communicator& device) {
      call(device, [&] {
        try {
          beside();
        } catch (...) {
          thrown = std::current_exception();
        }
      });
    });
    if (thrown) std::rethrow_exception(thrown);
  }

  std::unique_ptr<Communicator> host_, device_;
  std::function<std::unique_ptr<Communicator>()> make_;
  std::function<void(const std::function<void()>&)> guarded_;
};

}  // namespace

void DeviceTransport::announce(const std::vector<NamedGroup>& groups) {
  std::vector<NamedGroup> shared;
  for (const NamedGroup& group : groups)
    if (group.members.size() > 1) shared.push_back(group);
  const std::string name = "announcement " + std::to_string(announcements_++);
  const std::vector<NamedGroup> all = announced_by_all(inner(), name, shared);
  if (all.empty()) return;
  if (!world_) {
    calls_.making.guarded("joining the other ranks' GPUs", [&] {
      world_ = calls_.making.begin("the world", everyone(*this), static_cast<int>(rank().value));
    });
  }
  std::set<std::string> exchanges;
  for (const NamedGroup& group : shared)
    if (group.exchanges || in_order_) exchanges.insert(group.name);  // add_in_order() exchanges
  for (MadeGroup& made : split_in_rounds(calls_.making, *world_, rank(), all, exchanges))
    announced_[made.name] = std::move(made.backend);
}

// Returns the group's backend, which may be taken only once; makes the group if it was not
// announced.
DeviceBackend DeviceTransport::taken(const std::string& name, const std::vector<Rank>& members) {
  if (auto announced = announced_.extract(name)) return announced.mapped();
  return make_apart(calls_.making, rank(), {{"group " + name, members}}, FirstCall::exchange)
      .front()
      .backend;
}

std::unique_ptr<Communicator> DeviceTransport::make_group(const std::string& name,
                                                          const std::vector<Rank>& members) {
  auto host = inner().make_group(name, members);
  if (members.size() == 1) return std::make_unique<StagedCommunicator>(std::move(host));
  const auto make = [this, name](DeviceBackend backend) {
    return std::make_unique<DeviceGroup>(name, std::move(backend), in_order_);
  };
  std::unique_ptr<Communicator> device;
  if (announced_.contains(name)) device = make(taken(name, members));
  return std::make_unique<TwoWays>(
      std::move(host), std::move(device), [=, this] { return make(taken(name, members)); },
      [this, name](const std::function<void()>& call) {
        calls_.making.guarded("group " + name, call);
      });
}

void DeviceTransport::connect(const std::vector<Channel>& channels) {
  if (channels.empty()) return;
  std::vector<NamedGroup> pairs;
  for (const Channel& channel : channels)
    pairs.push_back({"messages from " + std::to_string(channel.source.value) + " to " +
                         std::to_string(channel.destination.value),
                     {channel.source, channel.destination}});
  std::vector<MadeGroup> made = make_apart(calls_.making, rank(), pairs, FirstCall::one_way);
  const std::scoped_lock lock(mutex_);
  for (std::size_t c = 0; c < channels.size(); ++c)
    links_[channels[c]] = std::move(made[c].backend);
}

DeviceBackend DeviceTransport::connected(const Channel& channel) {
  const auto find = [&] {
    const std::scoped_lock lock(mutex_);
    const auto found = links_.find(channel);
    return found != links_.end() ? found->second : DeviceBackend();
  };
  if (DeviceBackend link = find()) return link;
  // Without the lock, because it waits for the other end. One thread exchanges messages.
  connect({channel});
  return find();
}

void DeviceTransport::prepare(const std::vector<Channel>& channels) {
  std::vector<Channel> fresh;
  {
    const std::scoped_lock lock(mutex_);
    for (const Channel& channel : channels)
      if (!links_.contains(channel)) fresh.push_back(channel);
  }
  connect(fresh);
}

void DeviceTransport::leave(const Transfer& transfer) {
  const auto made = std::make_shared<c10::Event>(transfer.tensor.device().type());
  const Tensor copy = transfer.tensor.clone();
  made->record(current_stream(copy.device()));
  {
    const std::scoped_lock lock(mutex_);
    left_[transfer.tag] = {copy, made};
  }
  came_.notify_all();
}

void DeviceTransport::abort(const std::string& reason) {
  {
    const std::scoped_lock lock(mutex_);
    aborted_ = true;
  }
  came_.notify_all();
  ForwardingTransport::abort(reason);  // first, so that the others get the reason, not its effect
  calls_.abort();
}

void DeviceTransport::take(const Transfer& transfer) {
  Left left;
  {
    std::unique_lock lock(mutex_);
    const auto wakes = [&] { return aborted_ || left_.contains(transfer.tag); };
    while (!came_.wait_for(lock, std::chrono::milliseconds(100), wakes)) {
      lock.unlock();
      calls_.making.guarded("a message to itself", [] {});  // throws if a peer is lost
      lock.lock();
    }
    if (!left_.contains(transfer.tag))
      throw LostPeer(rank(), "a message to this rank itself did not arrive");
    left = left_.extract(transfer.tag).mapped();
  }
  const c10::Stream here = current_stream(transfer.tensor.device());
  left.made->block(here);
  left.tensor.record_stream(here);
  Tensor into = transfer.tensor;
  into.copy_(left.tensor);
}

void DeviceTransport::exchange(const std::vector<Transfer>& transfers) {
  std::vector<Transfer> of_host;
  std::map<Channel, std::vector<const Transfer*>> channels;
  for (const Transfer& transfer : transfers) {
    if (transfer.tensor.is_cpu()) {
      of_host.push_back(transfer);
    } else if (transfer.tensor.numel() == 0) {
      continue;
    } else if (transfer.peer == rank()) {
      transfer.sends ? leave(transfer) : take(transfer);
    } else {
      const auto [source, destination] =
          transfer.sends ? std::pair(rank(), transfer.peer) : std::pair(transfer.peer, rank());
      channels[{source, destination}].push_back(&transfer);
    }
  }
  if (!of_host.empty()) inner().exchange(of_host);
  if (channels.empty()) return;
  const torch::NoGradGuard no_grad;
  calls_.making.guarded("a message", [&] {
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    const bool apart = channels.size() > 1;  // or one would wait for the other
    for (auto& [channel, list] : channels) {
      std::sort(list.begin(), list.end(),
                [](const Transfer* a, const Transfer* b) { return a->tag < b->tag; });
      const DeviceBackend backend = connected(channel);
      backend->begin_messages(apart);
      for (const Transfer* transfer : list) {
        std::vector<Tensor> tensors{transfer->tensor.view({-1})};
        if (transfer->sends)
          backend->send(tensors, 1, 0);
        else
          backend->recv(tensors, 0, 0);
      }
      works.push_back(backend->endCoalescing());
    }
    for (const auto& work : works)
      if (work) work->wait();
  });
}

std::unique_ptr<Transport> alone_on_device(std::unique_ptr<Transport> host) {
  const DeviceMaking making{
      torch::kCPU,
      [](const std::string& name, const std::vector<Rank>&, int) -> FamilyPointer {
        POLYPHONY_CHECK(false, "a world of one rank has no other ranks for " << name);
      },
      [](const std::string&, const std::function<void()>& call) { call(); },
      [](const std::function<void()>& calls) { calls(); }};
  const DeviceCalls calls{making, [](const c10::Event& event) { event.synchronize(); }, [] {}};
  return std::make_unique<DeviceTransport>(std::move(host), calls, true);
}

}  // namespace polyphony::exec
