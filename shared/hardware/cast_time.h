// The part of a GEMM's time in which its operands are cast.
#pragma once

#include "shared/hardware/hardware.h"

namespace polyphony {

// Returns the time of the casts to a narrow format that kernel_time() includes; zero for kernels
// without them. The operands are read in the compute format and written in the narrow format
// before the multiplication, 3/2 of the bytes that the GEMM then moves. Own count, with casts that
// are not fused.
Seconds cast_time(const HardwareProfile& profile, const Kernel& kernel);

}  // namespace polyphony
