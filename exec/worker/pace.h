// Durations for emulated compute (shared/hardware/pace.h).
#pragma once

#include "exec/runner/runner.h"
#include "shared/hardware/hardware.h"

namespace polyphony::exec {

// Returns the least durations of a rank's compute ops: the profile's prediction times `scale`.
Runner::Pace make_pace(const Program& program, Rank rank, const Cluster& cluster,
                       const HardwareProfile& profile, double scale);

}  // namespace polyphony::exec
