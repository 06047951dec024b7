// A device without hardware that runs asynchronously to the host, as a GPU does: for tests of the
// code that a GPU runs.
//
// Its kernels are LibTorch's CPU kernels, and its memory is host memory. A stream is a thread with
// a queue: operators return when their work is queued, and only the order within a stream is
// guaranteed. It registers as LibTorch's PrivateUse1, so that streams, events, guards, the
// allocator and autograd's threads are used through the same calls as CUDA's (c10::Stream,
// c10::Event, c10::StreamGuard, Tensor::record_stream). So tests run the same code that runs on a
// GPU. For nccl_test, whose subject names CUDA's device type, it registers as CUDA instead
// (tests/exec/nccl_double/nccl_double.h).
//
// As on a GPU, operations that are not ordered are unsafe. Kernels start after a random delay;
// freed memory is poisoned in the order of the stream on which it was allocated, and reused at
// once; host scalars are read when an operator is called, and pinned memory when the copy runs.
//
// Host waits are counted: `item()`, copies to the host, blocking copies from it, and
// synchronizations of streams, events and devices.
//
// Unlike on a GPU, the kernels of one stream run on one core.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "exec/torch_pch.h"

namespace polyphony::exec::testing {

inline constexpr int kQueuedDevices = 16;

torch::Device queued_device(int index);

struct QueuedCounts {
  std::int64_t kernels = 0;
  // Counts by name: ATen's operators without "aten::", "copy" and its destination, calls of a
  // group.
  std::map<std::string, std::int64_t> names;
  std::int64_t products = 0;  // matrix multiplications among them
  double product_flops = 0;
  std::map<std::string, std::int64_t> waits;  // of the host, by reason
  std::map<std::string, std::int64_t>
      unshaped;  // operators that wait because the shape of their result is unknown
  std::int64_t host_waits() const;
};
// Returns the counts of a device since the last call.
QueuedCounts take_counts(torch::Device device);

// For all devices: a random pause of up to this time before each kernel, drawn from `seed`; 0: no
// pause.
void delay_kernels(std::int64_t longest_microseconds, std::uint64_t seed);

// Typical mistakes of GPU programs, for tests that must detect them. For all devices.
enum class SeededFault : std::uint8_t {
  none,
  missing_wait,  // no stream waits for an event of another stream
  freed_early,   // memory is reused although another stream still uses it
};
void seed_fault(SeededFault fault);

// Ways in which a GPU makes unrelated work wait, which the double leaves out unless asked.
struct StrictDevice {
  // Hardware queues, which streams share by their number. Work of a queue runs in the order in which
  // the host queued it, one piece at a time. 0: every stream has a queue of its own. Source: CUDA
  // C++ Programming Guide, CUDA_DEVICE_MAX_CONNECTIONS; stricter, because on a GPU the next kernel
  // of a queue may begin before the previous one has ended.
  int queues = 0;
  // Before every n-th kernel that it queues, and every n-th block of memory that it allocates, the
  // host waits for all that its device was given, as it may when CUDA loads a module or when the
  // allocator returns memory. 0: never.
  int waits_every = 0;
  // Bytes that tensors may take. When they are used up, the host waits for all that its device was
  // given, as the caching allocator does; then it throws torch::OutOfMemoryError. 0: no limit.
  std::int64_t bytes = 0;
};
// Makes all devices strict until the end of the scope.
class Strictly {
 public:
  explicit Strictly(const StrictDevice& device);
  ~Strictly();
  Strictly(const Strictly&) = delete;
  Strictly& operator=(const Strictly&) = delete;
};

// Queues host work on the current stream of the device, in place of a kernel of a library (NCCL).
void queue_on_current(torch::Device device, std::function<void()> work,
                      const std::string& name = "host work");

// Returns a CPU tensor that shares the tensor's memory. Only work that is queued on the stream may
// read it.
torch::Tensor seen_by_kernels(const torch::Tensor& tensor);

// Returns when all streams of the device are done; drain() rethrows the exception of a kernel. Not
// counted as a host wait.
void wait_idle(torch::Device device);
void drain(torch::Device device);

}  // namespace polyphony::exec::testing
