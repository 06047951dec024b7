// Changes of cost tables: of a run with emulated compute (shared/hardware/pace.h), and of a step
// that is slower or faster as a whole.
#pragma once

#include "shared/cost/cost.h"
#include "shared/hardware/pace.h"

namespace polyphony {

// Sets the duration of every compute op in `costs` to max(its duration, pace.scale · its duration
// with pace.profile). Other nodes do not change.
void apply_pace(const Program& program, const Compiled& compiled, const Cluster& cluster,
                const PaceModel& pace, CostTable& costs);
// Multiplies all times by `factor`: durations and delays by it, rates of links by its inverse.
void scale_times(CostTable& costs, double factor);

}  // namespace polyphony
