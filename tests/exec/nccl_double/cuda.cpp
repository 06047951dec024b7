// The double of CUDA's runtime and of c10::cuda, for what exec/device/nccl.cpp and nccl_backend.cpp
// use: devices and streams are those of the queued device (tests/exec/device_double/). Functions
// that they only refer to, by inline functions of LibTorch's headers, end the process.
#include "tests/exec/nccl_double/cuda.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "tests/exec/device_double/streams.h"

namespace polyphony::exec::testing::nccl {

namespace {

struct Handles {
  std::mutex mutex;
  std::map<std::pair<c10::DeviceIndex, c10::StreamId>, std::unique_ptr<CUstream_st>> all;
};
Handles& handles() {
  static auto* const one = new Handles;  // streams outlive main()
  return *one;
}

std::atomic<int> shared_first{-1}, shared_second{-1};

[[noreturn]] void absent(const char* function) {
  std::fprintf(stderr, "%s is not in the double of CUDA\n", function);
  std::abort();
}

bool exists(c10::DeviceIndex device) { return device >= 0 && device < kQueuedDevices; }

}  // namespace

cudaStream_t handle_of(const c10::Stream& stream) {
  if (stream.id() == 0) return nullptr;
  const std::scoped_lock lock(handles().mutex);
  auto& handle = handles().all[{stream.device_index(), stream.id()}];
  if (!handle) handle = std::make_unique<CUstream_st>(stream.device_index(), stream.id());
  return handle.get();
}

bool is_stream(cudaStream_t handle) {
  const std::scoped_lock lock(handles().mutex);
  return std::any_of(handles().all.begin(), handles().all.end(),
                     [&](const auto& one) { return one.second.get() == handle; });
}

void share_gpu(int first, int second) {
  shared_first = first;
  shared_second = second;
}

}  // namespace polyphony::exec::testing::nccl

using namespace polyphony::exec::testing;
using nccl::absent;

namespace c10::cuda {

DeviceIndex device_count() noexcept { return kQueuedDevices; }
DeviceIndex current_device() { return queued::current_device(); }
void set_device(DeviceIndex device, bool) { queued::exchange_device(device); }
cudaError_t GetDevice(DeviceIndex* device) {
  *device = queued::current_device();
  return cudaSuccess;
}
cudaError_t SetDevice(DeviceIndex device, bool) {
  if (!nccl::exists(device)) return cudaErrorInvalidDevice;
  queued::exchange_device(device);
  return cudaSuccess;
}
cudaError_t MaybeSetDevice(DeviceIndex device) { return SetDevice(device, false); }
DeviceIndex ExchangeDevice(DeviceIndex device) { return queued::exchange_device(device); }
DeviceIndex MaybeExchangeDevice(DeviceIndex device) { return queued::exchange_device(device); }
void warn_or_error_on_sync() { absent("c10::cuda::warn_or_error_on_sync"); }

CUDAStream getCurrentCUDAStream(DeviceIndex device) {
  const DeviceIndex on = device < 0 ? queued::current_device() : device;
  return CUDAStream(CUDAStream::UNCHECKED, Stream(Stream::UNSAFE, Device(DeviceType::CUDA, on),
                                                  queued::current_stream(on)));
}
CUDAStream getDefaultCUDAStream(DeviceIndex device) {
  const DeviceIndex on = device < 0 ? queued::current_device() : device;
  return CUDAStream(CUDAStream::UNCHECKED, Stream(Stream::UNSAFE, Device(DeviceType::CUDA, on), 0));
}
CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device) {
  TORCH_CHECK(nccl::is_stream(stream) && stream->device == device, "not a stream of device ",
              int{device});
  return CUDAStream(CUDAStream::UNCHECKED,
                    Stream(Stream::UNSAFE, Device(DeviceType::CUDA, device), stream->id));
}
CUDAStream getStreamFromPool(bool, DeviceIndex) { absent("c10::cuda::getStreamFromPool"); }
CUDAStream getStreamFromPool(int, DeviceIndex) { absent("c10::cuda::getStreamFromPool"); }
void setCurrentCUDAStream(CUDAStream stream) { queued::exchange_stream(stream.unwrap()); }
cudaStream_t CUDAStream::stream() const { return nccl::handle_of(stream_); }
bool CUDAStream::query() const { absent("CUDAStream::query"); }
void CUDAStream::synchronize() const { absent("CUDAStream::synchronize"); }

void c10_cuda_check_implementation(std::int32_t error, const char* file, const char* function,
                                   std::uint32_t, bool) {
  TORCH_CHECK(error == 0, "CUDA's double: error ", error, " in ", function, " of ", file);
}

std::atomic<CUDACachingAllocator::CUDAAllocator*> CUDACachingAllocator::allocator{nullptr};

}  // namespace c10::cuda

namespace at::cuda {

cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  static auto* const all = new std::array<cudaDeviceProp, kQueuedDevices>{};
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  cudaDeviceProp& one = all->at(static_cast<std::size_t>(device));
  std::snprintf(one.name, sizeof(one.name), "double of a GPU");
  one.major = 9;
  one.totalGlobalMem = std::size_t{80} << 30;
  one.multiProcessorCount = 132;  // H100
  const int id = device == nccl::shared_second ? nccl::shared_first.load() : int{device};
  std::fill(std::begin(one.uuid.bytes), std::end(one.uuid.bytes), static_cast<char>(id + 1));
  return &one;
}

}  // namespace at::cuda

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;  // H100
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  // A stream that the default stream waits for would order unrelated work.
  if (flags != cudaStreamNonBlocking || priority > 0 || priority < -5) return cudaErrorInvalidValue;
  const c10::DeviceIndex device = queued::current_device();
  *stream = nccl::handle_of(c10::Stream(
      c10::Stream::UNSAFE, c10::Device(c10::DeviceType::CUDA, device), queued::new_stream(device)));
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return "an error of CUDA's double"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { absent("cudaDeviceSynchronize"); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned) { absent("cudaEventCreateWithFlags"); }
cudaError_t cudaEventDestroy(cudaEvent_t) { absent("cudaEventDestroy"); }
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t) {
  absent("cudaEventElapsedTime");
}
cudaError_t cudaEventQuery(cudaEvent_t) { absent("cudaEventQuery"); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { absent("cudaEventRecord"); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { absent("cudaEventSynchronize"); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  absent("cudaStreamWaitEvent");
}
cudaError_t cudaStreamGetPriority(cudaStream_t, int*) { absent("cudaStreamGetPriority"); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const cudaDeviceProp& one = *at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device));
  if (attribute == cudaDevAttrComputeCapabilityMajor)
    *value = one.major;
  else if (attribute == cudaDevAttrMultiProcessorCount)
    *value = one.multiProcessorCount;
  else
    absent("this attribute of cudaDeviceGetAttribute");
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t*, std::size_t*) { absent("cudaMemGetInfo"); }

}  // extern "C"
