// Memory statistics of a device's caching allocator.
#pragma once

#include <cstdint>

#include "exec/torch_pch.h"
#include "shared/units.h"

namespace polyphony::exec {

// `used`: peak over the run of memory in use by tensors, or by streams that still use freed
// tensors.
// `held`: peak of memory reserved from the device.
struct DeviceMemory {
  Bytes used, held;
  std::int64_t segments = 0;  // reserved at the end
};
DeviceMemory memory_of(torch::Device device);

}  // namespace polyphony::exec
