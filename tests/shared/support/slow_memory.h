// A device whose times are easily calculated by hand.
#pragma once

#include "shared/hardware/hardware.h"

namespace polyphony::test {

// 1 TFLOP/s, 1 GB/s, so memory is the bottleneck; efficiencies of 1, 1 us per launch.
inline HardwareProfile slow_memory() {
  HardwareProfile profile;
  profile.device = {"slow", FlopsPerSecond(1e12), {}, {}, BytesPerSecond(1e9), Bytes(1 << 30)};
  profile.gemm_efficiency = profile.attention_efficiency = profile.memory_efficiency = 1;
  profile.dispatch = Seconds(1e-6);
  return profile;
}

}  // namespace polyphony::test
