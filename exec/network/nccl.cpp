#include "exec/network/nccl.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iostream>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "exec/network/device_transport.h"
#include "exec/network/gloo_context.h"
#include "exec/network/store.h"
#include "exec/system/process.h"
#include "exec/transport/staged.h"
#include "shared/patience.h"

namespace polyphony::exec {

namespace {

using Uuid = std::array<std::int64_t, 2>;

// A communicator of NCCL's, connected at once and not at the first call: a member with nothing to send there would not
// come. When a rank is lost, what waits for it on the GPU is aborted.
DeviceBackend connect(const std::shared_ptr<GlooContext>& context, torch::Device device,
                      const std::string& name, int index, int size) {
  return connected(context, [=](const GlooContext& shared) -> DeviceBackend {
    const auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = milliseconds(kForEver);  // its watchdog's clock; await() has ours
    auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(
        c10::make_intrusive<c10d::PrefixStore>("nccl/" + name, shared.store), index, size, options);
    group->eagerConnectSingleDevice(device);
    return group;
  });
}

// The groups of a transport, to be aborted together: a kernel that waits for a lost peer ends no other way.
class Groups {
 public:
  DeviceBackend add(DeviceBackend group) {
    const std::scoped_lock lock(mutex_);
    groups_.push_back(group);
    return group;
  }
  void abort() {
    const std::scoped_lock lock(mutex_);
    for (const DeviceBackend& group : groups_) group->abort();
    groups_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<DeviceBackend> groups_;
};

void await(GlooContext& context, Groups& groups, const c10::Event& done) {
  constexpr std::chrono::microseconds kLook{20};
  guarded(context, "waiting for the GPU", [&] {
    Patience patience(context.options.timeout, steady_now());
    while (!done.query()) {
      if (context.liveness->lost() || patience.over(steady_now())) {
        groups.abort();
        throw LostPeer(Rank(), "not ended");
      }
      std::this_thread::sleep_for(kLook);
    }
  });
}

DeviceCalls calls(Transport& gloo, torch::Device device) {
  const std::shared_ptr<GlooContext> context = context_of(gloo);
  const auto groups = std::make_shared<Groups>();
  return {[=](const std::string& name, int index, int size) {
            return groups->add(connect(context, device, name, index, size));
          },
          [=](const std::string& where, const std::function<void()>& call) {
            guarded(*context, where, call);
          },
          [=](const c10::Event& event) { await(*context, *groups, event); }};
}

// Zeros for a rank without a GPU. Numbers will not do: launchers may show each rank one GPU only.
Uuid uuid_of(torch::Device device) {
  Uuid uuid{};
  if (!device.is_cuda()) return uuid;
  const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(device.index());
  static_assert(sizeof(properties.uuid) == sizeof(uuid));
  std::memcpy(uuid.data(), &properties.uuid, sizeof(uuid));
  return uuid;
}

enum class Gpus : std::uint8_t { none, some, one_each };

Gpus gpus_of_all(Transport& gloo, torch::Device device) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < gloo.world_size(); ++rank)
    ranks.emplace_back(static_cast<std::size_t>(rank));
  const Uuid own = uuid_of(device);
  torch::Tensor mine = torch::empty({2}, torch::kInt64);
  std::memcpy(mine.data_ptr(), own.data(), sizeof(own));
  torch::Tensor all = torch::empty({2 * gloo.world_size()}, torch::kInt64);
  gloo.make_group("GPUs", ranks)->all_gather(mine, all, std::vector<std::int64_t>(ranks.size(), 2));
  std::vector<Uuid> uuids(ranks.size());
  std::memcpy(uuids.data(), all.const_data_ptr(), all.nbytes());
  std::sort(uuids.begin(), uuids.end());
  if (uuids.back() == Uuid{} && uuids.front() == Uuid{}) return Gpus::none;
  const bool twice = std::adjacent_find(uuids.begin(), uuids.end()) != uuids.end();
  const bool missing = std::find(uuids.begin(), uuids.end(), Uuid{}) != uuids.end();
  return twice || missing ? Gpus::some : Gpus::one_each;
}

}  // namespace

Bytes gpu_memory(torch::Device device) {
  return Bytes(
      static_cast<std::int64_t>(at::cuda::getDeviceProperties(device.index())->totalGlobalMem));
}

std::unique_ptr<Transport> connect_nccl(std::unique_ptr<Transport> gloo, torch::Device device,
                                        bool in_order) {
  if (device.is_cuda()) c10::cuda::set_device(device.index());
  const Gpus gpus = gpus_of_all(*gloo, device);
  if (gpus == Gpus::none) return gloo;
  if (gpus == Gpus::one_each) {
    DeviceCalls nccl = calls(*gloo, device);
    return std::make_unique<DeviceTransport>(std::move(gloo), std::move(nccl), in_order);
  }
  if (gloo->rank() == Rank(0)) {
    std::cerr
        << "some ranks share a GPU or have none: what they exchange goes through host memory, over "
           "Gloo instead of NCCL"
        << std::endl;
  }
  return std::make_unique<StagedTransport>(std::move(gloo));
}

}  // namespace polyphony::exec
