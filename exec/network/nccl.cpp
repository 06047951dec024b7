#include "exec/network/nccl.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "exec/network/device_calls.h"
#include "exec/network/store.h"
#include "exec/transport/staged.h"

namespace polyphony::exec {

namespace {

using Uuid = std::array<std::int64_t, 2>;

// A communicator of NCCL's, connected at once and not at the first call: a member with nothing to send there would not
// come.
DeviceBackend make_group(const c10::intrusive_ptr<c10d::Store>& store, torch::Device device,
                         const std::string& name, int index, int size) {
  const auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = milliseconds(kForEver);  // its watchdog's clock; await() has ours
  auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(
      c10::make_intrusive<c10d::PrefixStore>("nccl/" + name, store), index, size, options);
  group->eagerConnectSingleDevice(device);
  return group;
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
    // Or the first call of each size connects peers on the host, in whatever order calls are queued.
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);
    DeviceCalls calls = device_calls(
        *gloo, device, [device](const auto& store, const std::string& name, int index, int size) {
          return make_group(store, device, name, index, size);
        });
    return std::make_unique<DeviceTransport>(std::move(gloo), std::move(calls), in_order);
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
