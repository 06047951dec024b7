// What a device's caching allocator says of a run.
#pragma once

#include <cstdint>

#include "exec/torch_pch.h"
#include "shared/units.h"

namespace polyphony::exec {

// The most that was in use, by tensors or by streams not yet through with them,
// and that it held, over the run.
struct DeviceMemory {
  Bytes used, held;
  std::int64_t segments = 0;  // that it holds at the end
};
DeviceMemory memory_of(torch::Device device);

}  // namespace polyphony::exec
