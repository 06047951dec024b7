#include "exec/worker/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

namespace polyphony::exec {

DeviceMemory memory_of(torch::Device device) {
  const auto seen = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  const auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return {Bytes(seen.active_bytes[all].peak), Bytes(seen.reserved_bytes[all].peak),
          seen.segment[all].current};
}

}  // namespace polyphony::exec
