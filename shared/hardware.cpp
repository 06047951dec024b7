#include "shared/hardware.h"

#include <algorithm>
#include <cmath>

#include "shared/devices.h"
#include "shared/error.h"

namespace polyphony {

Seconds kernel_time(const HardwareProfile& profile, const Kernel& kernel, NumberFormat precision) {
  const FlopsPerSecond fastest = peak(profile.device, precision);
  POLYPHONY_CHECK(fastest.value > 0, profile.device.name << " has no peak for " << name(precision));
  double efficiency = 1;
  if (kernel.kind == KernelKind::attention) efficiency = profile.attention_efficiency;
  if (kernel.kind == KernelKind::gemm) {
    const double size = std::cbrt(static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                                  static_cast<double>(kernel.k));
    efficiency = profile.gemm_efficiency * (size > 0 ? size / (size + profile.gemm_half_size) : 1);
  }
  const Seconds arithmetic = kernel.flops / (fastest * efficiency);
  const Seconds memory = kernel.bytes / (profile.device.memory_rate * profile.memory_efficiency);
  return std::max(arithmetic, memory) + profile.dispatch * kernel.launches;
}

}  // namespace polyphony
