#include "tests/exec/queued/device_world.h"

#include <atomic>

#include "exec/transport/forwarding.h"
#include "exec/transport/in_process.h"
#include "tests/exec/queued/queued_device.h"

namespace polyphony::exec::testing {

namespace {

std::string next_name() {
  static std::atomic<int> worlds{0};
  return "world " + std::to_string(++worlds) + "/";
}

}  // namespace

DeviceWorld::DeviceWorld() : name_(next_name()) {}

std::unique_ptr<Transport> DeviceWorld::transport(Transport& inner, torch::Device device,
                                                  bool in_order, Seconds patience) {
  DeviceCalls calls{device, {}, {}, {}, {}};
  calls.connect = [this, device, patience](const std::string& name, int index, int size) {
    DeviceBackend made = queued_backend(name_ + name, index, size, device, patience);
    const std::scoped_lock lock(mutex_);
    groups_.push_back(made);
    if (aborted_) made->abort();
    return made;
  };
  calls.guarded = [this](const std::string& where, const std::function<void()>& call) {
    try {
      call();
    } catch (const std::exception&) {
      const std::scoped_lock lock(mutex_);
      if (aborted_) throw LostPeer(Rank(), where);
      throw;
    }
  };
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
  for (const DeviceBackend& group : groups_) group->abort();
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
