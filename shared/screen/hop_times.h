// How long messages between pipeline stages delay the stages at each end.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"

namespace polyphony {

// Returns the delays for messages between the first ranks of stages. If gradients return, the round
// trip of a microbatch delays both stages: rows the later one, gradients the earlier one. If none
// return, rows are sent ahead while stages compute and delay no stage. Software that waits for its
// sends (SoftwareStack::blocking_messages) delays the earlier stage in any case.
HopTimes hop_times(const Cluster& cluster, const HardwareProfile& profile);
}  // namespace polyphony
