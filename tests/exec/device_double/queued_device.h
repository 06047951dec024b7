// A device without hardware that runs asynchronously to the host, as a GPU does: for tests of the
// code that a GPU runs.
//
// Its kernels are LibTorch's CPU kernels, and its memory is host memory. A stream is a thread with
// a queue: operators return when their work is queued, and only the order within a stream is
// guaranteed. It registers as LibTorch's PrivateUse1, so that streams, events, guards, the
// allocator and autograd's threads are used through the same calls as CUDA's (c10::Stream,
// c10::Event, c10::StreamGuard, Tensor::record_stream). So tests run the same code that runs on a
// GPU.
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
  // All of these by name: ATen's operators without "aten::", "copy" and where to, a group's calls.
  std::map<std::string, std::int64_t> names;
  std::int64_t products = 0;  // of them, of two matrices
  double product_flops = 0;
  std::map<std::string, std::int64_t> waits;  // of the host, by what it waited for
  std::map<std::string, std::int64_t>
      unshaped;  // operators waited for because their result's shape is not known
  std::int64_t host_waits() const;
};
// Of a device since the last call.
QueuedCounts take_counts(torch::Device device);

// Of all devices: before each kernel a pause of up to this long, drawn by `seed`; 0: none.
void delay_kernels(std::int64_t longest_microseconds, std::uint64_t seed);

// Mistakes that programs of GPUs have, for tests that must find them. Of all devices.
enum class SeededFault : std::uint8_t {
  none,
  missing_wait,  // no stream waits for another's event
  freed_early,   // memory is given out again although another stream still uses it
};
void seed_fault(SeededFault fault);

// Queues host work on the current stream of the device: what a library's kernel (NCCL's) would be there.
void queue_on_current(torch::Device device, std::function<void()> work,
                      const std::string& name = "host work");

// The tensor's memory as a CPU's tensor. Only work of the stream that is queued may look at it.
torch::Tensor seen_by_kernels(const torch::Tensor& tensor);

// Returns when all streams of the device are done; drain() rethrows what a kernel threw. Not counted.
void wait_idle(torch::Device device);
void drain(torch::Device device);

}  // namespace polyphony::exec::testing
