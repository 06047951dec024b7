#include "shared/hardware/hardware.h"

#include <algorithm>
#include <cmath>

#include "shared/error.h"
#include "shared/hardware/cast_time.h"
#include "shared/hardware/devices.h"
#include "shared/layers/layer_table.h"

namespace polyphony {
namespace {

// The mean number of unused rows in an expert's last tile, and the head width for which
// attention_efficiency is stated. Measured on an H100 and an H200 (scenarios/measured/README.md):
// 35 rows on both; (w / 128) to the power of 0.44 for cuDNN's kernels and 0.20 for
// FlashAttention-2's.
constexpr double kTileRows = 35;
constexpr double kHeadWidth = 128;

bool is_narrow(const SoftwareStack& stack, const Kernel& kernel) {
  return stack.matrix.has_value() && is_in_narrow_format(kernel);
}

double gemm_efficiency(const HardwareProfile& profile, const Kernel& kernel) {
  const double size = std::cbrt(static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                                static_cast<double>(kernel.k));
  double efficiency = profile.gemm_efficiency;
  if (size > 0) efficiency *= size / (size + profile.gemm_half_size);
  if (kernel.experts) {
    const double rows = static_cast<double>(kernel.m);
    efficiency *= rows / (rows + kTileRows);
    if (!profile.stack.fused_experts) efficiency *= profile.grouped_efficiency;
  }
  return efficiency;
}

Seconds attention_time(const HardwareProfile& profile, const Kernel& kernel,
                       NumberFormat precision) {
  const BytesPerSecond memory = profile.device.memory_rate * profile.memory_efficiency;
  const FlopsPerSecond fastest = peak(profile.device, precision);
  const bool backward = kernel.n > 1;
  const double own = !backward                 ? 0
                     : kernel.k <= kNarrowHead ? profile.stack.narrow_attention_backward
                                               : profile.stack.wide_attention_backward;
  if (own > 0) return kernel.flops / (fastest * own);
  double efficiency = profile.stack.early_attention || profile.stack.eager_attention
                          ? profile.early_attention_efficiency
                          : profile.attention_efficiency;
  if (kernel.m > 0 && !profile.stack.eager_attention) {
    if (backward) efficiency *= profile.attention_backward;
    const double keys = static_cast<double>(kernel.m),
                 half = profile.attention_half_keys * (backward ? 2 : 1);
    if (half > 0)
      efficiency *= keys / (keys + half) * std::cbrt(static_cast<double>(kernel.k) / kHeadWidth);
  }
  if (!profile.stack.eager_attention)
    return std::max(kernel.flops / (fastest * efficiency), kernel.bytes / memory);
  // Eager attention has two GEMMs over whole squares, of which causal attention needs half.
  const double squares = kernel.layer == LayerKind::decoder_block ? 2 : 1;
  const double scores = squares * kernel.flops.value / (4 * static_cast<double>(kernel.k));
  const Bytes moved(static_cast<std::int64_t>(scores * kScorePasses *
                                              static_cast<double>(size_of(precision).value)));
  return squares * kernel.flops / (fastest * efficiency) + (kernel.bytes + moved) / memory;
}

}  // namespace

Seconds cast_time(const HardwareProfile& profile, const Kernel& kernel) {
  const bool cast = kernel.kind == KernelKind::gemm && is_narrow(profile.stack, kernel) &&
                    !(profile.stack.fused_experts && kernel.experts);
  return cast ? kernel.bytes / (profile.device.memory_rate * profile.memory_efficiency)
              : Seconds(0);
}

bool is_in_narrow_format(const Kernel& kernel) {
  return kernel.kind == KernelKind::gemm && is_block(kernel.layer) &&
         std::min({kernel.m, kernel.n, kernel.k}) >= kNarrowSide;
}

Seconds kernel_time(const HardwareProfile& profile, const Kernel& kernel, NumberFormat precision) {
  const BytesPerSecond memory = profile.device.memory_rate * profile.memory_efficiency;
  const SoftwareStack& stack = profile.stack;
  const auto supported = [&](NumberFormat format) {
    const FlopsPerSecond fastest = peak(profile.device, format);
    POLYPHONY_CHECK(fastest.value > 0, profile.device.name << " has no peak for " << name(format));
    return fastest;
  };
  const Seconds launch = profile.dispatch * kernel.launches;
  switch (kernel.kind) {
    case KernelKind::attention:
      supported(precision);
      return attention_time(profile, kernel, precision) + launch;
    case KernelKind::gemm: {
      const bool narrow = is_narrow(stack, kernel);
      const FlopsPerSecond fastest = supported(narrow ? *stack.matrix : precision);
      const Seconds arithmetic = kernel.flops / (fastest * gemm_efficiency(profile, kernel)),
                    operands = kernel.bytes / memory;
      const Seconds product =
          profile.products_wait ? operands + arithmetic : std::max(operands, arithmetic);
      return product + cast_time(profile, kernel) + launch;
    }
    case KernelKind::elementwise:
    case KernelKind::embedding:
    case KernelKind::loss:
      return stack.traffic * (kernel.bytes / memory) + stack.launches * launch;
  }
  return {};
}

Seconds launch_time(const HardwareProfile& profile, const Kernel& kernel) {
  const bool product = kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::attention;
  const double each = is_narrow(profile.stack, kernel) ? 3 : product ? 1 : profile.stack.launches;
  return profile.stack.host * (kernel.launches * each);
}

}  // namespace polyphony
