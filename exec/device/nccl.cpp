#include "exec/device/nccl.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "exec/device/device.h"
#include "exec/device/device_calls.h"
#include "exec/device/nccl_backend.h"
#include "exec/transport/staged.h"
#include "exec/wire/store.h"
#include "shared/error.h"

namespace polyphony::exec {

namespace {

using Uuid = std::array<std::int64_t, 2>;

// A parent communicator that is only split: one channel, no traffic. It is non-blocking, so that an
// operation in progress can be polled and abandoned. The communicators made from it are blocking,
// because each call on a non-blocking one starts a thread (src/group.cc).
class NcclFamily : public DeviceFamily {
 public:
  NcclFamily(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name, int index,
             int size, torch::Device device)
      : store_(c10::make_intrusive<c10d::PrefixStore>("nccl/" + name, store)),
        index_(index),
        size_(size),
        device_(device) {
    if (index % kRanksPerRoot != 0) return;
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id), "making a unique id");
    set_text(*store_, std::to_string(index), std::string(id.internal, sizeof(id.internal)));
  }
  ~NcclFamily() override {
    const c10::cuda::CUDAGuard on(device_);
    give_up();
  }

  bool ready() override {
    const c10::cuda::CUDAGuard on(device_);
    if (aborted_) {
      give_up();
      throw std::runtime_error("aborted");
    }
    if (own_ == nullptr && !begun()) return false;
    ncclResult_t state = ncclInProgress;
    check_nccl(ncclCommGetAsyncError(own_, &state), "joining", own_);
    if (state == ncclInProgress) return false;
    check_nccl(state, "joining", own_);
    // NCCL sets made_ last (NVIDIA/nccl#1472).
    return part_.color < 0 || std::atomic_ref<ncclComm_t>(made_).load() != nullptr;
  }
  void split(const DevicePart& mine) override {
    const c10::cuda::CUDAGuard on(device_);
    part_ = mine;
    made_ = nullptr;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    if (mine.most_processors > 0) {
      config.minCTAs = 1;
      config.maxCTAs = mine.most_processors;
    }
    const ncclResult_t result =
        ncclCommSplit(own_, mine.color < 0 ? NCCL_SPLIT_NOCOLOR : mine.color,
                      std::max(mine.index, 0), &made_, &config);
    if (result != ncclInProgress) check_nccl(result, "joining", own_);
  }
  DeviceBackend part() override {
    if (part_.color < 0) return {};
    return nccl_backend(std::exchange(made_, nullptr), part_.index, part_.size, device_);
  }
  void abort() override { aborted_ = true; }

 private:
  // The same as in c10d (TORCH_NCCL_RANKS_PER_ROOT of LibTorch 2.11).
  static constexpr int kRanksPerRoot = 128;

  // Begins to connect. Returns false if not all root ranks have posted their unique ids yet.
  bool begun() {
    const int roots = (size_ + kRanksPerRoot - 1) / kRanksPerRoot;
    while (static_cast<int>(ids_.size()) < roots) {
      const std::string key = std::to_string(ids_.size() * static_cast<std::size_t>(kRanksPerRoot));
      try {
        constexpr std::chrono::milliseconds kSlice{100};  // short: the wait is not interruptible
        store_->wait({key}, kSlice);
      } catch (const c10::DistStoreError&) {
        return false;
      }
      const std::string text = get_text(*store_, key);
      ncclUniqueId& id = ids_.emplace_back();
      POLYPHONY_CHECK(text.size() == sizeof(id.internal), "not a unique id of NCCL");
      std::memcpy(id.internal, text.data(), text.size());
    }
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.minCTAs = config.maxCTAs = 1;
    const ncclResult_t result =
        ncclCommInitRankScalable(&own_, size_, index_, roots, ids_.data(), &config);
    if (result != ncclInProgress) check_nccl(result, "joining", own_);
    return true;
  }
  // Ends the operation in progress, and waits for that end. A half-made group is freed only by the
  // end of the process.
  void give_up() {
    if (ncclComm_t own = std::exchange(own_, nullptr)) static_cast<void>(ncclCommAbort(own));
  }

  c10::intrusive_ptr<c10d::Store> store_;
  int index_, size_;
  torch::Device device_;
  std::vector<ncclUniqueId> ids_;
  ncclComm_t own_ = nullptr, made_ = nullptr;
  DevicePart part_;
  std::atomic<bool> aborted_{false};
};

void together(const std::function<void()>& calls) {
  check_nccl(ncclGroupStart(), "several groups at once");
  std::exception_ptr error;
  try {
    calls();
  } catch (...) {
    error = std::current_exception();
  }
  const ncclResult_t end = ncclGroupEnd();
  if (error) std::rethrow_exception(error);
  check_nccl(end, "several groups at once");
}

// Returns the GPU's UUID; zeros for a rank without a GPU. Device numbers do not identify GPUs,
// because a launcher may make a single GPU visible to each rank.
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
  const std::vector<Rank> ranks = everyone(gloo);
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

std::string gpu_libraries() {
  // The loaded NCCL reports MAJOR * 10000 + MINOR * 100 + PATCH (nccl.h); CUDA reports 1000 * MAJOR
  // + 10 * MINOR.
  int cuda = 0, nccl = 0;
  // Not C10_CUDA_CHECK, which needs a driver.
  POLYPHONY_CHECK(cudaRuntimeGetVersion(&cuda) == cudaSuccess, "CUDA's runtime has no version");
  check_nccl(ncclGetVersion(&nccl), "its version");
  return "CUDA " + std::to_string(cuda / 1000) + "." + std::to_string(cuda / 10 % 100) + ", NCCL " +
         std::to_string(nccl / 10000) + "." + std::to_string(nccl / 100 % 100) + "." +
         std::to_string(nccl % 100);
}

std::string gpu_name(torch::Device device) {
  const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(device.index());
  return properties.name + (" (compute capability " + std::to_string(properties.major)) + "." +
         std::to_string(properties.minor) + ")";
}

Bytes gpu_memory(torch::Device device) {
  return Bytes(
      static_cast<std::int64_t>(at::cuda::getDeviceProperties(device.index())->totalGlobalMem));
}

int gpu_processors(torch::Device device) {
  return at::cuda::getDeviceProperties(device.index())->multiProcessorCount;
}

c10::Stream new_gpu_stream(torch::Device device, bool urgent) {
  const c10::cuda::CUDAGuard on(device);
  int lowest = 0, highest = 0;
  C10_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  cudaStream_t made = nullptr;
  C10_CUDA_CHECK(
      cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, urgent ? highest : lowest));
  return c10::cuda::getStreamFromExternal(made, device.index()).unwrap();
}

std::unique_ptr<Transport> connect_nccl(std::unique_ptr<Transport> gloo, torch::Device device,
                                        bool in_order) {
  if (device.is_cuda()) c10::cuda::set_device(device.index());
  const Gpus gpus = gpus_of_all(*gloo, device);
  if (gpus == Gpus::none) return gloo;
  if (gpus == Gpus::one_each) {
    DeviceCalls calls = device_calls(
        *gloo, device,
        [device](const auto& store, const std::string& name, int index, int size) {
          return std::make_shared<NcclFamily>(store, name, index, size, device);
        },
        together);
    return std::make_unique<DeviceTransport>(std::move(gloo), std::move(calls), in_order);
  }
  if (gloo->rank() == Rank(0)) {
    std::cerr
        << "some ranks share a GPU or have none: tensors are exchanged through host memory, over "
           "Gloo instead of NCCL"
        << std::endl;
  }
  return std::make_unique<StagedTransport>(std::move(gloo));
}

}  // namespace polyphony::exec
