// Which layouts a framework can run, for searches that must answer with one of them.
#pragma once

#include "sim/frameworks/target_version.h"
#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Returns the layout if emit() of it is complete; otherwise the nearest for which that is so: with
// all encoders on the first pipeline stage, with whole recomputation in place of some blocks', with
// other sizes of stages (Megatron-LM before 0.13). Nothing if there is none.
std::optional<Layout> runnable_form(const PlanInputs& inputs, const Layout& layout,
                                    const TargetVersion& target);

// Returns the scenario with its search restricted to the placements, schedules, sharding and kinds
// of context-parallel attention that the framework has in some layout.
Scenario restricted_to(const TargetVersion& target, Scenario scenario);

// Returns the two as a search takes them.
SweepTarget sweep_target(const TargetVersion& target);

}  // namespace polyphony::sim
