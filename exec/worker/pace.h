// What paced ranks are slowed down to.
#pragma once

#include "exec/runner/runner.h"
#include "shared/hardware/hardware.h"

namespace polyphony::exec {

// Of a rank's compute ops: so many times what the profile says of them.
Runner::Pace make_pace(const Program& program, Rank rank, const Cluster& cluster,
                       const HardwareProfile& profile, double scale);

}  // namespace polyphony::exec
