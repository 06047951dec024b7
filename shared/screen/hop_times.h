// How long messages between pipeline stages hold up each end.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"

namespace polyphony {

// Between the first ranks of stages. Where gradients return, a microbatch's way down and back holds up
// both: rows the second, gradients the first. Where none do, rows come ahead while stages compute, and hold up
// nobody. Software that waits for them (SoftwareStack::blocking_messages) holds up the first in any case.
HopTimes hop_times(const Cluster& cluster, const HardwareProfile& profile);
}  // namespace polyphony
