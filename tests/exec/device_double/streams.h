// Streams and events of the queued device (tests/exec/device_double/queued_device.h). Internal.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/exec/device_double/queued_device.h"

// The name of the queued device's type, and of its dispatch key.
#if defined(POLYPHONY_QUEUED_AS_CUDA)
#define POLYPHONY_QUEUED CUDA
#else
#define POLYPHONY_QUEUED PrivateUse1
#endif

namespace polyphony::exec::testing::queued {

inline constexpr c10::DeviceType kQueued = c10::DeviceType::POLYPHONY_QUEUED;

class Queue {
 public:
  Queue(c10::DeviceIndex device, std::uint64_t number);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // `kernel`: true if it may be delayed.
  void push(std::function<void()> work, bool kernel);
  bool idle();
  void drain();

 private:
  void loop();
  std::mutex mutex_;
  std::condition_variable changed_;
  struct Work {
    std::function<void()> run;
    bool kernel;
  };
  std::deque<Work> work_;  // the first one is running
  c10::DeviceIndex device_;
  std::uint64_t number_, kernels_ = 0;  // seeds of its random pauses
  bool stop_ = false;
  std::thread thread_;
};

// Returns the stream by number; 0 is the default stream. Creates it at first use.
Queue& queue(c10::Device device, c10::StreamId stream);
c10::StreamId current_stream(c10::DeviceIndex device);
c10::DeviceIndex current_device();
// Sets the stream of this thread; returns the previous one, as in c10.
c10::StreamId exchange_stream(const c10::Stream& stream);
c10::DeviceIndex exchange_device(c10::DeviceIndex device);
c10::StreamId stream_of_pool(c10::DeviceIndex device, bool high_priority);
// Returns a stream that no one else has (cudaStreamCreate).
c10::StreamId new_stream(c10::DeviceIndex device);

// Shared with the work that completes it: an event may be destroyed before that has run.
struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t recorded = 0, reached = 0;
  double at_ms = 0;             // time at which the last version was completed
  c10::DeviceIndex device = 0;  // device of the stream that recorded it last
  Queue* queue = nullptr;       // that stream
};
using Event = std::shared_ptr<EventState>;

void record(const Event& event, const c10::Stream& stream);
// Waits until the currently recorded version is completed.
void block(const Event& event, const c10::Stream& stream);
void await(const Event& event);
bool reached(const Event& event);
bool reached(const Event& event, std::int64_t version);
// The exception of the first kernel that failed on the device, as c10::AcceleratorError. The device
// is unusable until wait_idle() or drain(): no kernel runs there, and all calls that queue one or
// wait throw this exception.
void throw_failure(c10::DeviceIndex device);

SeededFault seeded();
std::int64_t byte_limit();  // StrictDevice::bytes
// Called by the host before it queues a kernel or allocates memory (StrictDevice::waits_every).
void wait_if_strict(c10::DeviceIndex device);
// Returns when all streams of the device are done, whatever their kernels threw.
void wait_for_all(c10::DeviceIndex device);

// Queues the kernel of a group, which takes a slot itself (tests/exec/device_double/board.h).
void queue_group_kernel(torch::Device device, std::function<void()> work, const std::string& name);

void count_kernel(c10::DeviceIndex device, const std::string& name);
void count_product(c10::DeviceIndex device, double flops);  // in addition to its kernel
void count_wait(c10::DeviceIndex device, const std::string& what);

// Waits for the stream; throws if the device has failed.
void await_stream(const c10::Stream& stream);

// The memory of a tensor, and how often it was allocated and released so far.
struct Life {
  const void* block = nullptr;
  std::int64_t allocated = 0, released = 0;
};
// Returns the memory in which these bytes are; none if no tensor of the device holds it.
std::optional<Life> life_of(c10::DeviceIndex device, const void* data, std::size_t bytes);
// Returns whether the memory was overwritten because of a later release, in the order of its stream.
bool overwritten(const Life& life);

c10::Allocator& allocator();
c10::Allocator& pinned_allocator();
bool is_pinned(const void* data);
// Records that this stream also uses the memory of the tensor.
void use_on(const c10::DataPtr& data, const c10::Stream& stream);

}  // namespace polyphony::exec::testing::queued
