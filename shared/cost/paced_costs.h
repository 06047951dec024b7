// The cost table of a run with emulated compute (`polyphony rehearse`), in which a rank sleeps
// until an op would have ended on the emulated device.
#pragma once

#include "shared/cost/cost.h"
#include "shared/hardware/pace.h"

namespace polyphony {

// Raises the duration of every compute op in `costs` to at least `pace.scale` times its duration
// with the pace's profile (shared/hardware/pace.h). Other nodes do not change.
void apply_pace(const Program& program, const Compiled& compiled, const Cluster& cluster,
                const PaceModel& pace, CostTable& costs);

}  // namespace polyphony
