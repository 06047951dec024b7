// The kernels of one rank's step in groups that a profiler can tell apart, with their predicted
// times on the device: what a profiler's trace of the rank is compared with.
//   gemm                 GEMMs of weights, but the experts'; without the casts to narrow formats
//   grouped_gemm         the experts' GEMMs
//   attention_forward    including those that are recomputed
//   attention_backward
//   memory_bound         elementwise kernels, norms, embeddings, loss, casts
//   optimizer            of the update
// Times are those of kernel_time() without `dispatch`, the gap between kernels, and without
// overheads per op. Layers with measured times (HardwareProfile::layer_times) count by their
// kernels. Communication is not included.
#pragma once

#include <array>
#include <cstdint>

#include "shared/enum_names.h"
#include "shared/hardware/hardware.h"
#include "shared/program/program.h"

namespace polyphony {

enum class KernelGroup : std::uint8_t {
  gemm,
  grouped_gemm,
  attention_forward,
  attention_backward,
  memory_bound,
  optimizer
};
constexpr auto names(KernelGroup) {
  return names_of<KernelGroup>("GEMMs", "grouped GEMMs", "attention forward", "attention backward",
                               "memory-bound kernels", "optimizer");
}
inline constexpr std::size_t kKernelGroups = static_cast<std::size_t>(last_of(KernelGroup{})) + 1;
constexpr std::size_t place(KernelGroup group) { return static_cast<std::size_t>(group); }

struct GroupTimes {
  std::array<Seconds, kKernelGroups> of{};
  Flops gemm_flops{}, grouped_flops{};
  // Whether the rank has linear attention, whose kernels count as attention_forward in both
  // directions.
  bool linear_attention = false;
};
// Returns the times of the ops of `rank`; zeros for a rank without ops, as in a folded Program. On
// a device that is not degraded.
GroupTimes group_times(const Program& program, Rank rank, const HardwareProfile& profile);

}  // namespace polyphony
