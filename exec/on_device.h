// Streams, and copies between host and device that do not block, for any device that runs
// asynchronously to the host (CUDA GPUs, and their test double).
#pragma once

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

// Returns this thread's current stream on the device, and the device's default stream, on which a
// rank computes.
inline c10::Stream current_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}
inline c10::Stream default_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getDefaultStream(device);
}

// Copies a host tensor to the device without blocking the host: through pinned memory, in the order
// of the current stream. On a CPU it returns the tensor itself.
inline torch::Tensor on_device(const torch::Tensor& host, torch::Device device) {
  return device.is_cpu() ? host : host.pin_memory().to(device, /*non_blocking=*/true);
}
inline torch::Tensor indices_on(const std::vector<std::int64_t>& values, torch::Device device) {
  return on_device(torch::tensor(values, torch::kInt64), device);
}

// A copy on its way from the device to the host, through pinned memory. `here` may be read once the
// event `came` is reached.
struct OnTheWay {
  torch::Tensor here;
  c10::Event came;
};
inline OnTheWay to_host(const torch::Tensor& there) {
  OnTheWay copy{
      torch::empty(there.sizes(), there.options().device(torch::kCPU).pinned_memory(true)),
      c10::Event(there.device().type())};
  copy.here.copy_(there, /*non_blocking=*/true);
  copy.came.record(current_stream(there.device()));
  return copy;
}

}  // namespace polyphony::exec
