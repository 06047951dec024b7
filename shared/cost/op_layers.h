// The duration of each layer of a compute op.
#pragma once

#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/program/program.h"

namespace polyphony {

// Returns the duration of each layer of the op, in order, on a device that is not degraded, without
// the overhead of the op.
std::vector<Seconds> op_layer_times(const Program& program, OpId op, const Cluster& cluster,
                                    const HardwareProfile& profile);

}  // namespace polyphony
