#include "exec/device/device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "exec/device/device_transport.h"
#include "exec/gloo/gloo.h"
#include "exec/transport/in_process.h"
#include "shared/error.h"
#if defined(POLYPHONY_NCCL)
#include <torch/cuda.h>

#include "exec/device/nccl.h"
#endif

namespace polyphony::exec {

namespace {

#if defined(POLYPHONY_NCCL)

constexpr bool kGpuBuild = true;

int visible_gpus() { return torch::cuda::device_count(); }

Bytes memory_of_gpu(torch::Device device, int local_ranks) {
  // A launcher may make only its own GPU visible to each rank.
  const int gpus = visible_gpus() == 1 ? std::max(gpus_of_node(), 1) : visible_gpus();
  return Bytes(gpu_memory(device).value / ((local_ranks + gpus - 1) / gpus));
}

#else

constexpr bool kGpuBuild = false;

int visible_gpus() { return 0; }

Bytes memory_of_gpu(torch::Device device, int) {
  POLYPHONY_CHECK(false, "a build without GPU support does not know the memory of " << device);
}

}  // namespace

std::string gpu_libraries() { return {}; }
std::string gpu_name(torch::Device device) {
  POLYPHONY_CHECK(false, "a build without GPU support does not know the name of " << device);
}

namespace {

#endif

// Sets the number of hardware queues from the host to the GPU to its maximum. Streams that share a
// queue wait for each other, so a message whose other end is late would delay unrelated work. The
// maximum is 32, the default 8; the driver reads the variable when it starts.
// Source: CUDA C++ Programming Guide, "CUDA Environment Variables", CUDA_DEVICE_MAX_CONNECTIONS.
void use_all_queues() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*replace=*/0); }

// Lets the caching allocator grow its segments, so that blocks of varying lengths do not leave gaps
// that only a wait for the whole GPU could close (PyTorch, "CUDA semantics", expandable_segments).
void grow_segments() {
  if (std::getenv("PYTORCH_CUDA_ALLOC_CONF") == nullptr)  // the older name
    setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", /*replace=*/0);
}

}  // namespace

int gpus_of_node() {
  std::error_code none;
  const std::filesystem::directory_iterator entries("/proc/driver/nvidia/gpus", none);
  return none ? 0 : static_cast<int>(std::distance(begin(entries), end(entries)));
}

torch::Device choose_device(const std::string& wish, const LaunchEnv& launch) {
  if (!wish.empty() && wish != "cpu" && wish != "cuda")
    throw InputError("--device", "", "must be \"cuda\" or \"cpu\", not \"" + wish + "\"",
                     "omit it to use a GPU if there is one");
  if (wish == "cuda" && !kGpuBuild)
    throw InputError("--device", "", "this polyphony-worker was built without CUDA and NCCL",
                     "run POLYPHONY_CUDA=on scripts/setup, then configure and build again");
  use_all_queues();
  grow_segments();
  // Partial sums of a bf16 product stay in fp32: LibTorch's default lets cuBLAS round them.
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  const int gpus = wish == "cpu" ? 0 : visible_gpus();
  if (wish == "cuda" && gpus == 0)
    throw InputError("--device", "", "no CUDA device is visible on this machine",
                     "check nvidia-smi, the driver and CUDA_VISIBLE_DEVICES");
  if (gpus == 0) return torch::kCPU;
  return {torch::kCUDA, static_cast<torch::DeviceIndex>(launch.local_rank % gpus)};
}

int processors_of(torch::Device device) {
#if defined(POLYPHONY_NCCL)
  if (device.is_cuda()) return gpu_processors(device);
#endif
  static_cast<void>(device);
  return 0;
}

Bytes memory_per_rank(torch::Device device, const LaunchEnv& launch) {
  if (device.is_cuda()) return memory_of_gpu(device, launch.local_world_size);
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  POLYPHONY_CHECK(pages > 0 && page > 0, "the system does not report its memory size");
  return Bytes(std::int64_t{pages} * page / launch.local_world_size);
}

std::unique_ptr<Transport> connect(const LaunchEnv& launch, torch::Device device,
                                   [[maybe_unused]] bool in_order) {
  if (launch.world_size == 1) {
    auto alone = std::move(make_in_process(1).front());
    if (device.is_cpu()) return alone;
    return alone_on_device(std::move(alone));
  }
  auto gloo = connect_gloo(launch);
#if defined(POLYPHONY_NCCL)
  return connect_nccl(std::move(gloo), device, in_order);
#else
  return gloo;
#endif
}

}  // namespace polyphony::exec
