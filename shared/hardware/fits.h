// What the kernels of a generation of GPUs reach of its peaks: fitted to published steps by
// scripts/fit_profiles, or measured (shared/hardware/fits.cpp says which, with sources).
#pragma once

#include "shared/hardware/devices.h"

namespace polyphony {

struct Fit {
  double gemm_efficiency, gemm_half_size, early_attention_efficiency, grouped_efficiency;
  // Not fitted.
  double attention_efficiency, attention_backward, memory_efficiency, optimizer_efficiency;
  double step_error;
  const char* rows;
};

// Keys a query at which attention's forward reaches half.
inline constexpr double kAttentionHalfKeys = 217;

// Of a GPU's generation. Internal error: fitted to nothing.
const Fit& fit_of(FittedOn fitted);

}  // namespace polyphony
