// Which form of an operation runs: one of our kernels (this room) or several of ATen's. Decided here and nowhere else.
//   by device  our kernels on CUDA devices of compute capability 8.0 and above, in builds that have them; else ATen's
//   The other two are for tests and comparisons: `fused` takes our bodies on CPUs, too.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

enum class Forms { by_device, aten, fused };
void use_forms(Forms forms);  // of this process
Forms forms();

// Major number of a CUDA device's compute capability; 0 of any other device.
int capability(torch::Device device);

// This build has kernels: it was made with nvcc (scripts/cmake/kernels.cmake). For which compute capabilities, and later
// ones; the oldest's major number.
bool are_built();
const char* built_for();  // "8.0, 9.0"; empty: none
inline constexpr int kOldest = 8;

// For tensors like `x`: bf16, fp32 or fp64, on a device for which we have kernels.
bool wanted(const torch::Tensor& x);

}  // namespace polyphony::exec::kernels
