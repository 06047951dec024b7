#include "tests/exec/device_double/device_world.h"

#include <atomic>

#include "exec/transport/forwarding.h"
#include "exec/transport/in_process.h"
#include "tests/exec/device_double/queued_device.h"

namespace polyphony::exec::testing {

namespace {

std::string next_name() {
  static std::atomic<int> worlds{0};
  return "world " + std::to_string(++worlds) + "/";
}

// With the groups made of it, for as long as the world lives.
class Family : public DeviceFamily {
 public:
  explicit Family(FamilyPointer inner) : inner_(std::move(inner)) {}
  bool ready() override { return inner_->ready(); }
  void split(const DevicePart& mine) override { inner_->split(mine); }
  DeviceBackend part() override {
    DeviceBackend group = inner_->part();
    const std::scoped_lock lock(mutex_);
    if (group && aborted_) group->abort();
    if (group) groups_.push_back(group);
    return group;
  }
  void abort() override {
    const std::scoped_lock lock(mutex_);
    aborted_ = true;
    inner_->abort();
    for (const DeviceBackend& group : groups_) group->abort();
  }

 private:
  FamilyPointer inner_;
  std::mutex mutex_;
  bool aborted_ = false;
  std::vector<DeviceBackend> groups_;
};

}  // namespace

DeviceWorld::DeviceWorld() : name_(next_name()) {}

std::unique_ptr<Transport> DeviceWorld::transport(Transport& inner, torch::Device device,
                                                  bool in_order, Seconds patience) {
  DeviceMaking making{device, {}, {}, queued_together};
  making.begin = [this, device, patience](const std::string& name, const std::vector<Rank>& members,
                                          int index) {
    const auto made = std::make_shared<Family>(
        queued_family(name_ + name, index, static_cast<int>(members.size()), device, patience));
    const std::scoped_lock lock(mutex_);
    families_.push_back(made);
    if (aborted_) made->abort();
    return made;
  };
  making.guarded = [this](const std::string& where, const std::function<void()>& call) {
    try {
      call();
    } catch (const std::exception&) {
      const std::scoped_lock lock(mutex_);
      if (aborted_) throw LostPeer(Rank(), where);
      throw;
    }
  };
  DeviceCalls calls{std::move(making), {}, {}};
  calls.await = [this](const c10::Event& event) {
    event.synchronize();
    const std::scoped_lock lock(mutex_);
    if (aborted_) throw LostPeer(Rank(), "another rank has stopped");
  };
  calls.abort = [this] { abort(); };
  return std::make_unique<DeviceTransport>(std::make_unique<ForwardingTransport>(inner), calls,
                                           in_order);
}

void DeviceWorld::abort() {
  const std::scoped_lock lock(mutex_);
  aborted_ = true;
  for (const FamilyPointer& family : families_) family->abort();
}

void connect_members(Communicator& group, torch::Device device) {
  const torch::NoGradGuard no_grad;
  const auto members = static_cast<std::size_t>(group.size());
  const std::vector<std::int64_t> equal(members, 1);
  std::vector<std::int64_t> uneven(members, 1);
  uneven.back() = 2;
  const auto count = static_cast<std::int64_t>(members),
             mine = uneven[static_cast<std::size_t>(group.index())];
  for (const auto& counts : {equal, uneven}) {
    const std::int64_t all = count + (counts == uneven ? 1 : 0), part = counts == uneven ? mine : 1;
    torch::Tensor one = torch::zeros({part}, device), whole = torch::zeros({all}, device);
    group.all_gather(one, whole, counts);
    group.reduce_scatter(whole, one, counts);
    group.all_reduce(whole, Reduction::sum);
  }
  torch::Tensor sent = torch::zeros({count}, device), received = torch::zeros({count}, device);
  group.all_to_all(sent, received, equal, equal);
}

void on_devices(int ranks, bool in_order,
                const std::function<void(Transport&, torch::Device)>& body) {
  DeviceWorld world;
  run_in_process(ranks, [&](Transport& inner) {
    const torch::Device device = queued_device(static_cast<int>(inner.rank().value));
    try {
      const auto transport = world.transport(inner, device, in_order);
      body(*transport, device);
      drain(device);
    } catch (const std::exception& error) {
      inner.abort(error.what());
      world.abort();
      wait_idle(device);
      throw;
    }
  });
}

}  // namespace polyphony::exec::testing
