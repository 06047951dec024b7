#include "tests/exec/queued/streams.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "shared/error.h"

namespace polyphony::exec::testing::queued {

namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr std::int64_t kPool = 32;  // streams of the pool: as many as CUDA's

std::atomic<std::int64_t> longest_delay_us{0};
std::atomic<std::uint64_t> delay_seed{0};
std::atomic<SeededFault> fault{SeededFault::none};

struct DeviceState {
  std::mutex mutex;
  std::map<c10::StreamId, std::unique_ptr<Queue>> queues;
  std::array<std::int64_t, 2> next{};  // of the pool, and of the one of high priority
  QueuedCounts counts;
};
// Threads outlive main(): never destroyed.
std::array<DeviceState, kQueuedDevices>& devices() {
  static auto* const all = new std::array<DeviceState, kQueuedDevices>;
  return *all;
}
DeviceState& state(c10::DeviceIndex device) {
  return devices().at(static_cast<std::size_t>(device));
}

thread_local c10::DeviceIndex device_now = 0;
thread_local std::array<c10::StreamId, kQueuedDevices> streams_now{};

// splitmix64 (Steele, Lea, Flood 2014): a number as if drawn by x.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Queue::Queue(std::uint64_t number) : number_(number), thread_([this] { loop(); }) {}

Queue::~Queue() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Queue::push(std::function<void()> work, bool kernel) {
  {
    const std::scoped_lock lock(mutex_);
    work_.push_back({std::move(work), kernel});
  }
  changed_.notify_all();
}

bool Queue::idle() {
  const std::scoped_lock lock(mutex_);
  return work_.empty();
}

void Queue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty(); });
}

std::exception_ptr Queue::error() {
  const std::scoped_lock lock(mutex_);
  return error_;
}

std::exception_ptr Queue::take_error() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(error_, nullptr);
}

void Queue::loop() {
  const torch::NoGradGuard no_grad;
  const at::AutoDispatchBelowAutograd kernels_alone;
  at::set_num_threads(1);  // or sums of one rank are cut otherwise than another's
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !work_.empty(); });
    if (work_.empty()) return;
    const Work work = std::move(work_.front());
    lock.unlock();
    std::exception_ptr error;
    try {
      if (const std::int64_t longest = longest_delay_us.load(); work.kernel && longest > 0) {
        const std::uint64_t drawn =
            mixed(delay_seed.load() + mixed(number_ * 1000003 + ++kernels_));
        std::this_thread::sleep_for(
            std::chrono::microseconds(drawn % static_cast<std::uint64_t>(longest + 1)));
      }
      work.run();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    work_.pop_front();
    if (work_.empty()) changed_.notify_all();
  }
}

Queue& queue(c10::Device device, c10::StreamId stream) {
  DeviceState& at = state(device.index());
  const std::scoped_lock lock(at.mutex);
  std::unique_ptr<Queue>& found = at.queues[stream];
  if (!found)
    found = std::make_unique<Queue>(static_cast<std::uint64_t>(device.index()) * 1000 +
                                    static_cast<std::uint64_t>(stream));
  return *found;
}

c10::StreamId current_stream(c10::DeviceIndex device) {
  return streams_now.at(static_cast<std::size_t>(device));
}
c10::DeviceIndex current_device() { return device_now; }

void record(const Event& event, const c10::Stream& stream) {
  std::int64_t version = 0;
  {
    const std::scoped_lock lock(event->mutex);
    version = ++event->recorded;
    event->device = stream.device_index();
  }
  queue(stream.device(), stream.id())
      .push(
          [event, version] {
            {
              const std::scoped_lock lock(event->mutex);
              event->reached = std::max(event->reached, version);
              event->at_ms = now_ms();
            }
            event->changed.notify_all();
          },
          false);
}

void await(const Event& event) {
  std::unique_lock lock(event->mutex);
  const std::int64_t version = event->recorded;
  event->changed.wait(lock, [&] { return event->reached >= version; });
}

bool reached(const Event& event) {
  const std::scoped_lock lock(event->mutex);
  return event->reached >= event->recorded;
}

SeededFault seeded() { return fault.load(); }

void block(const Event& event, const c10::Stream& stream) {
  if (seeded() == SeededFault::missing_wait) return;
  std::int64_t version = 0;
  {
    const std::scoped_lock lock(event->mutex);
    version = event->recorded;
    if (event->reached >= version) return;
  }
  queue(stream.device(), stream.id())
      .push(
          [event, version] {
            std::unique_lock lock(event->mutex);
            event->changed.wait(lock, [&] { return event->reached >= version; });
          },
          false);
}

void await_stream(const c10::Stream& stream) {
  Queue& waited = queue(stream.device(), stream.id());
  waited.drain();
  if (const std::exception_ptr error = waited.error()) std::rethrow_exception(error);
}

void count_kernel(c10::DeviceIndex device) {
  DeviceState& at = state(device);
  const std::scoped_lock lock(at.mutex);
  ++at.counts.kernels;
}
void count_wait(c10::DeviceIndex device, const std::string& what) {
  DeviceState& at = state(device);
  const std::scoped_lock lock(at.mutex);
  ++at.counts.waits[what];
}
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kQueuedDevices; }
  c10::DeviceIndex getCurrentDevice() const override { return device_now; }
  void setCurrentDevice(c10::DeviceIndex device) const override { device_now = device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return std::exchange(device_now, device);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return std::exchange(device_now, device);
  }
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kType, device_now}; }
  void setDevice(c10::Device device) const override {
    if (device.index() >= 0) device_now = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override { setDevice(device); }
  c10::Stream getStream(c10::Device device) const override {
    return stream(device, current_stream(numbered(device).index()));
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device, 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    DeviceState& at = state(numbered(device).index());
    const std::scoped_lock lock(at.mutex);
    const std::int64_t next = at.next[high_priority ? 1 : 0]++ % kPool;
    return stream(device, 1 + next + (high_priority ? kPool : 0));
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return getStreamFromGlobalPool(device, false);
  }
  c10::Stream exchangeStream(c10::Stream stream_) const override {
    const c10::Stream before = getStream(stream_.device());
    streams_now.at(static_cast<std::size_t>(stream_.device_index())) = stream_.id();
    return before;
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
    return event == nullptr || reached(*static_cast<Event*>(event));
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
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    count_wait(device, "device");
    drain({kType, device});
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
    return {kType, device.index() < 0 ? device_now : device.index()};
  }
  static c10::Stream stream(c10::Device device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, numbered(device), id);
  }
};

// Before main(): autograd makes a thread for each device that it sees at its first backward.
const bool registered = [] {
  c10::register_privateuse1_backend("queued");
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  c10::SetAllocator(kType, &allocator());
  c10::impl::registerDeviceGuard(kType, new Guard);
  return true;
}();

}  // namespace

}  // namespace polyphony::exec::testing::queued

namespace polyphony::exec::testing {

using namespace queued;

std::int64_t QueuedCounts::host_waits() const {
  std::int64_t sum = 0;
  for (const auto& [what, count] : waits) sum += count;
  return sum;
}

QueuedCounts take_counts(torch::Device device) {
  DeviceState& at = state(device.index());
  const std::scoped_lock lock(at.mutex);
  return std::exchange(at.counts, {});
}

void delay_kernels(std::int64_t longest_microseconds, std::uint64_t seed) {
  delay_seed = seed;
  longest_delay_us = longest_microseconds;
}

void seed_fault(SeededFault seeded) { fault = seeded; }

void queue_on_current(torch::Device device, std::function<void()> work) {
  count_kernel(device.index());
  queue(device, current_stream(device.index())).push(std::move(work), true);
}

namespace {

// When all are done, without what they threw; the first of that.
std::exception_ptr emptied(torch::Device device) {
  DeviceState& at = state(device.index());
  std::vector<Queue*> all;
  {
    const std::scoped_lock lock(at.mutex);
    for (const auto& [id, one] : at.queues) all.push_back(one.get());
  }
  // Work of one may wait for another's, but queues none.
  for (Queue* one : all) one->drain();
  std::exception_ptr first;
  for (Queue* one : all)
    if (const std::exception_ptr error = one->take_error(); error && !first) first = error;
  return first;
}

}  // namespace

void wait_idle(torch::Device device) { emptied(device); }

void drain(torch::Device device) {
  if (const std::exception_ptr error = emptied(device)) std::rethrow_exception(error);
}

torch::Device queued_device(int index) {
  POLYPHONY_CHECK(index >= 0 && index < kQueuedDevices, "queued device " << index);
  return {kType, static_cast<c10::DeviceIndex>(index)};
}

}  // namespace polyphony::exec::testing
