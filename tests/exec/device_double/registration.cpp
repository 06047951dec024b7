// Registers the queued device as LibTorch's PrivateUse1 (or CUDA, tests/exec/device_double/streams.h):
// the c10 interfaces to its streams, events and memory.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <utility>

#include "exec/fused/run.h"
#include "shared/error.h"
#include "tests/exec/device_double/streams.h"

namespace polyphony::exec::testing::queued {

namespace {

#if defined(POLYPHONY_QUEUED_AS_CUDA)
using HooksInterface = at::CUDAHooksInterface;
#else
using HooksInterface = at::PrivateUse1HooksInterface;
#endif

struct Hooks final : HooksInterface {
#if defined(POLYPHONY_QUEUED_AS_CUDA)
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  c10::DeviceIndex current_device() const override { return queued::current_device(); }
#endif
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kQueuedDevices; }
  c10::DeviceIndex getCurrentDevice() const override { return queued::current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { exchange_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return exchange_device(device);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchange_device(device);
  }
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kQueued; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kQueued, current_device()}; }
  void setDevice(c10::Device device) const override {
    if (device.index() >= 0) exchange_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override { setDevice(device); }
  c10::Stream getStream(c10::Device device) const override {
    return stream(device, current_stream(numbered(device).index()));
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device, 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return stream(device, stream_of_pool(numbered(device).index(), high_priority));
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return stream(device, new_stream(numbered(device).index()));
  }
  c10::Stream exchangeStream(c10::Stream stream_) const override {
    return stream(stream_.device(), exchange_stream(stream_));
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
              c10::EventFlag) const override {
    if (*event == nullptr) *event = new Event(std::make_shared<EventState>());
    queued::record(*static_cast<Event*>(*event), stream);
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) queued::block(*static_cast<Event*>(event), stream);
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    throw_failure((*static_cast<Event*>(event))->device);
    return reached(*static_cast<Event*>(event));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kQueuedDevices; }
  bool queryStream(const c10::Stream& stream) const override {
    return queue(stream.device(), stream.id()).idle();
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    count_wait(stream.device_index(), "stream");
    await_stream(stream);
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    count_wait((*static_cast<Event*>(event))->device, "event");
    await(*static_cast<Event*>(event));
    throw_failure((*static_cast<Event*>(event))->device);
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    count_wait(device, "device");
    drain({kQueued, device});
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    use_on(data, stream);
  }
  double elapsedTime(void* first, void* second, c10::DeviceIndex) const override {
    const Event &from = *static_cast<Event*>(first), &to = *static_cast<Event*>(second);
    const std::scoped_lock lock(from->mutex, to->mutex);
    POLYPHONY_CHECK(from->reached >= from->recorded && to->reached >= to->recorded,
                    "the time between events that are not reached");
    return to->at_ms - from->at_ms;
  }

 private:
  static c10::Device numbered(c10::Device device) {
    return {kQueued, device.index() < 0 ? current_device() : device.index()};
  }
  static c10::Stream stream(c10::Device device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, numbered(device), id);
  }
};

// Of our kernels. "polyphony::exec::kernels::GluForward<double>" is "GluForward".
void queue_loops(torch::Device device, std::function<void()> loops, const std::string& body) {
  const std::string name = body.substr(0, body.find('<'));
  queue_on_current(device, std::move(loops), name.substr(name.rfind(':') + 1));
}

// Before main(): autograd makes a thread for each device that it sees at its first backward.
const bool registered = [] {
#if !defined(POLYPHONY_QUEUED_AS_CUDA)
  c10::register_privateuse1_backend("queued");
  at::RegisterPrivateUse1HooksInterface(new Hooks);
#endif
  c10::SetAllocator(kQueued, &allocator());
  c10::impl::registerDeviceGuard(kQueued, new Guard);
  kernels::queue_loops_by(&queue_loops);
  return true;
}();

#if defined(POLYPHONY_QUEUED_AS_CUDA)
using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
using CUDAHooks = Hooks;  // the name by which LibTorch looks it up
REGISTER_CUDA_HOOKS(CUDAHooks)
#endif

}  // namespace

}  // namespace polyphony::exec::testing::queued
