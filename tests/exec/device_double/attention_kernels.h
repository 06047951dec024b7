// Sets the attention kernels that tests use, and reports the calls that the double of a GPU's
// kernels received (tests/exec/device_double/attention_kernels.cpp, cudnn_attention.cpp).
#pragma once

#include "exec/attention_calls/kernel_choice.h"

namespace polyphony::exec::testing {

// While it exists, attention uses this kernel, which accepts any format here.
struct Preferred {
  explicit Preferred(std::optional<AttentionKernel> kernel) { prefer_kernel(kernel); }
  ~Preferred() { prefer_kernel(std::nullopt); }
  Preferred(const Preferred&) = delete;
  Preferred& operator=(const Preferred&) = delete;
};

}  // namespace polyphony::exec::testing

namespace polyphony::exec::testing::queued {

// Returns whether the last backward of flash attention was called in deterministic mode.
bool summed_in_order();

// Returns and resets the numbers of calls of cuDNN attention.
struct CudnnCalls {
  int forward, backward;
};
CudnnCalls take_cudnn_calls();

}  // namespace polyphony::exec::testing::queued
