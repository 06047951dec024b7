#include "tests/exec/device_double/streams.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <pthread.h>

#include <array>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "exec/transport/communicator.h"
#include "shared/error.h"
#include "tests/exec/device_double/board.h"

namespace polyphony::exec::testing::queued {

namespace {

constexpr const char* kStreamThread = "queued stream";
constexpr std::int64_t kPool = 32;  // streams of the pool: as many as CUDA's

std::atomic<std::int64_t> longest_delay_us{0};
std::atomic<std::uint64_t> delay_seed{0};
std::atomic<SeededFault> fault{SeededFault::none};
std::atomic<int> hardware_queues{0}, waits_every{0};
std::atomic<std::int64_t> limit_of_bytes{0};

struct DeviceState {
  std::mutex mutex;
  std::map<c10::StreamId, std::unique_ptr<Queue>> queues;
  std::array<std::int64_t, 2> next{};  // of the pool, and of the one of high priority
  std::int64_t made = 0;               // streams besides the pools'
  std::atomic<int> calls{0};           // wait_if_strict()
  QueuedCounts counts;
  std::exception_ptr failure;  // of its first kernel that threw
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
bool has_failed(c10::DeviceIndex device) {
  DeviceState& at = state(device);
  const std::scoped_lock lock(at.mutex);
  return at.failure != nullptr;
}

// With what is being thrown. A lost peer stays one.
void fail(c10::DeviceIndex device) {
  std::exception_ptr thrown;
  try {
    throw;
  } catch (const LostPeer&) {
    thrown = std::current_exception();
  } catch (const std::exception& error) {
    thrown = std::make_exception_ptr(
        c10::AcceleratorError({__func__, __FILE__, __LINE__}, 1, error.what()));
  }
  DeviceState& at = state(device);
  const std::scoped_lock lock(at.mutex);
  if (!at.failure) at.failure = thrown;
}

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Queue::Queue(c10::DeviceIndex device, std::uint64_t number)
    : device_(device), number_(number), thread_([this] { loop(); }) {}

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

void Queue::loop() {
  const torch::NoGradGuard no_grad;
  const at::AutoDispatchBelowAutograd kernels_alone;
  at::set_num_threads(1);  // or sums of one rank are cut otherwise than another's
  pthread_setname_np(pthread_self(), kStreamThread);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !work_.empty(); });
    if (work_.empty()) return;
    const Work work = std::move(work_.front());
    lock.unlock();
    try {
      if (const std::int64_t longest = longest_delay_us.load(); work.kernel && longest > 0) {
        const std::uint64_t drawn =
            mixed(delay_seed.load() + mixed(number_ * 1000003 + ++kernels_));
        std::this_thread::sleep_for(
            std::chrono::microseconds(drawn % static_cast<std::uint64_t>(longest + 1)));
      }
      if (!work.kernel || !has_failed(device_)) work.run();
    } catch (...) {
      fail(device_);
    }
    lock.lock();
    work_.pop_front();
    if (work_.empty()) changed_.notify_all();
  }
}

Queue& queue(c10::Device device, c10::StreamId stream) {
  // Hardware queues have negative numbers.
  if (const int queues = hardware_queues.load(); queues > 0) stream = -1 - stream % queues;
  DeviceState& at = state(device.index());
  const std::scoped_lock lock(at.mutex);
  std::unique_ptr<Queue>& found = at.queues[stream];
  if (!found)
    found =
        std::make_unique<Queue>(device.index(), static_cast<std::uint64_t>(device.index()) * 1000 +
                                                    static_cast<std::uint64_t>(stream));
  return *found;
}

c10::StreamId current_stream(c10::DeviceIndex device) {
  return streams_now.at(static_cast<std::size_t>(device));
}
c10::StreamId exchange_stream(const c10::Stream& stream) {
  return std::exchange(streams_now.at(static_cast<std::size_t>(stream.device_index())),
                       stream.id());
}
c10::StreamId stream_of_pool(c10::DeviceIndex device, bool high_priority) {
  DeviceState& at = state(device);
  const std::scoped_lock lock(at.mutex);
  return 1 + at.next[high_priority ? 1 : 0]++ % kPool + (high_priority ? kPool : 0);
}
c10::StreamId new_stream(c10::DeviceIndex device) {
  DeviceState& at = state(device);
  const std::scoped_lock lock(at.mutex);
  return 1 + 2 * kPool + at.made++;
}
c10::DeviceIndex current_device() { return device_now; }
c10::DeviceIndex exchange_device(c10::DeviceIndex device) {
  return std::exchange(device_now, device);
}

SeededFault seeded() { return fault.load(); }
std::int64_t byte_limit() { return limit_of_bytes.load(); }

void wait_for_all(c10::DeviceIndex device) {
  DeviceState& at = state(device);
  std::vector<Queue*> all;
  {
    const std::scoped_lock lock(at.mutex);
    for (const auto& [id, one] : at.queues) all.push_back(one.get());
  }
  // Work of one may wait for another's, but queues none.
  for (Queue* one : all) one->drain();
}

void wait_if_strict(c10::DeviceIndex device) {
  const int every = waits_every.load();
  if (every > 0 && ++state(device).calls % every == 0) wait_for_all(device);
}

void await_stream(const c10::Stream& stream) {
  Queue& waited = queue(stream.device(), stream.id());
  waited.drain();
  throw_failure(stream.device_index());
}

void throw_failure(c10::DeviceIndex device) {
  DeviceState& at = state(device);
  const std::scoped_lock lock(at.mutex);
  if (at.failure) std::rethrow_exception(at.failure);
}

void count_kernel(c10::DeviceIndex device, const std::string& name) {
  DeviceState& at = state(device);
  const std::scoped_lock lock(at.mutex);
  ++at.counts.kernels;
  ++at.counts.names[name];
}
void count_product(c10::DeviceIndex device, double flops) {
  DeviceState& at = state(device);
  const std::scoped_lock lock(at.mutex);
  ++at.counts.products;
  at.counts.product_flops += flops;
}
void count_wait(c10::DeviceIndex device, const std::string& what) {
  DeviceState& at = state(device);
  const std::scoped_lock lock(at.mutex);
  ++at.counts.waits[what];
}
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

Strictly::Strictly(const StrictDevice& device) {
  hardware_queues = device.queues;
  waits_every = device.waits_every;
  limit_of_bytes = device.bytes;
}
Strictly::~Strictly() {
  hardware_queues = waits_every = 0;
  limit_of_bytes = 0;
}

namespace queued {

void queue_group_kernel(torch::Device device, std::function<void()> work, const std::string& name) {
  throw_failure(device.index());
  count_kernel(device.index(), name);
  wait_if_strict(device.index());
  queue(device, current_stream(device.index())).push(std::move(work), true);
}

}  // namespace queued

void queue_on_current(torch::Device device, std::function<void()> work, const std::string& name) {
  if (board().slots > 0)
    work = [computes = std::move(work), name, index = device.index(),
            on = &queue(device, current_stream(device.index()))] {
      board().begin_compute(*on, index, name);
      computes();
    };
  queue_group_kernel(device, std::move(work), name);
}

namespace {

// When all are done, without what they threw; the first of that.
std::exception_ptr emptied(torch::Device device) {
  wait_for_all(device.index());
  DeviceState& at = state(device.index());
  const std::scoped_lock lock(at.mutex);
  return std::exchange(at.failure, nullptr);
}

}  // namespace

void wait_idle(torch::Device device) { emptied(device); }

void drain(torch::Device device) {
  if (const std::exception_ptr error = emptied(device)) std::rethrow_exception(error);
}

torch::Device queued_device(int index) {
  POLYPHONY_CHECK(index >= 0 && index < kQueuedDevices, "queued device " << index);
  return {queued::kQueued, static_cast<c10::DeviceIndex>(index)};
}

}  // namespace polyphony::exec::testing
