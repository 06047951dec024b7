// Decides whether an operation runs as one fused kernel (exec/cuda) or as several ATen
// operators. This is the only place that decides it.
//   by_device  fused kernels on CUDA devices of compute capability 8.0 and above, in builds that
//              have them; ATen elsewhere
//   aten       always ATen; for tests and comparisons
//   fused      always the fused bodies, on CPUs, too; for tests and comparisons
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

enum class Forms { by_device, aten, fused };
void use_forms(Forms forms);  // sets it for this process
Forms forms();

// Returns the major number of a CUDA device's compute capability; 0 for any other device.
int capability(torch::Device device);

// Returns true if this build has fused kernels, that is, if it was made with nvcc
// (scripts/cmake/kernels.cmake).
bool are_built();
// Returns the compute capabilities that the kernels are compiled for ("8.0, 9.0"; they also run on
// later ones); empty: none.
const char* built_for();
// The major number of the oldest supported compute capability.
inline constexpr int kOldest = 8;

// Returns true if fused kernels are to be used for tensors like `x`: bf16, fp32 or fp64, on a
// device for which we have kernels.
bool wanted(const torch::Tensor& x);

}  // namespace polyphony::exec::kernels
