// Fitted efficiencies of each GPU generation: which shares of the peaks its kernels reach. They
// were fitted to published step times by scripts/fit_profiles, or measured;
// shared/hardware/fits.cpp states which, with sources.
#pragma once

#include "shared/hardware/devices.h"

namespace polyphony {

// The fields mean the same as in HardwareProfile (shared/hardware/hardware.h).
struct Fit {
  double gemm_efficiency, gemm_half_size, early_attention_efficiency, grouped_efficiency;
  // Not fitted, but measured or published.
  double attention_efficiency, attention_backward, memory_efficiency, optimizer_efficiency;
  double step_error;
  const char* rows;  // the published measurements it is fitted to, in words
};

// Keys per query at which the forward pass of attention reaches half of its efficiency.
inline constexpr double kAttentionHalfKeys = 217;

// Returns the fit of a GPU generation. Fails a CHECK for FittedOn::nothing.
const Fit& fit_of(FittedOn fitted);

}  // namespace polyphony
