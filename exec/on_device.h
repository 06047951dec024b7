// Numbers of the host on a rank's device, where the host does not wait for them: through pinned memory, behind what
// the current stream has to do. On a CPU they are there.
#pragma once

#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

inline torch::Tensor on_device(const torch::Tensor& host, torch::Device device) {
  return device.is_cpu() ? host : host.pin_memory().to(device, /*non_blocking=*/true);
}
inline torch::Tensor indices_on(const std::vector<std::int64_t>& values, torch::Device device) {
  return on_device(torch::tensor(values, torch::kInt64), device);
}

}  // namespace polyphony::exec
