// What code needs of a device that runs behind the host, whichever it is.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

// Of this thread; the one that computes.
inline c10::Stream current_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}
inline c10::Stream default_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getDefaultStream(device);
}

// Numbers of the host on the device, where the host does not wait for them: through pinned memory, behind what the
// current stream has to do. On a CPU they are there.
inline torch::Tensor on_device(const torch::Tensor& host, torch::Device device) {
  return device.is_cpu() ? host : host.pin_memory().to(device, /*non_blocking=*/true);
}
inline torch::Tensor indices_on(const std::vector<std::int64_t>& values, torch::Device device) {
  return on_device(torch::tensor(values, torch::kInt64), device);
}

// A device's numbers for the host, which has them when the event is reached: through pinned memory, too.
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
