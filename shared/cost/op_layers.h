// What each layer of a compute op takes.
#pragma once

#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/program/program.h"

namespace polyphony {

// In order; on a device as the profile says, without the op's overhead.
std::vector<Seconds> op_layer_times(const Program& program, OpId op, const Cluster& cluster,
                                    const HardwareProfile& profile);

}  // namespace polyphony
