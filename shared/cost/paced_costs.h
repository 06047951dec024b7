// What paced ranks make of a priced Program: compute ops that last at least `scale` times what the pace's
// profile says (shared/hardware/pace.h); the rest is as priced.
#pragma once

#include "shared/cost/cost.h"
#include "shared/hardware/pace.h"

namespace polyphony {

void apply_pace(const Program& program, const Compiled& compiled, const Cluster& cluster,
                const PaceModel& pace, CostTable& costs);

}  // namespace polyphony
