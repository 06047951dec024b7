// A change of a layout in the words of a framework, and which rows of a search it can run.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "sim/frameworks/emit.h"
#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Returns the software stack that predicts the framework.
const char* stack_of(const TargetVersion& target);

// emit() of a layout whose blocks are planned first.
Emitted emit_planned(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                     const TargetVersion& target);

// Returns the settings that differ, as the framework spells them: "--tensor-model-parallel-size 4",
// "without --sequence-parallel"; what `after` has and the framework cannot run: "cannot: ...".
std::vector<std::string> changed_settings(const Emitted& before, const Emitted& after);

// Which rows of an answer a framework can run.
struct TargetRows {
  TargetVersion target = Target::megatron_lm;
  int row = 0;                // the first that it can run, from 1; 0: none of those looked at
  std::size_t looked_at = 0;  // rows
  double slower = 0;          // by which its step is longer than row 1's, relative
  std::vector<std::string> missing;  // what row 1 needs and the framework does not have
};
TargetRows rows_for(const Scenario& scenario, const HardwareProfile& profile, const Sweep& sweep,
                    const TargetVersion& target);
// Returns one or two sentences.
std::string rows_text(const TargetRows& rows);

}  // namespace polyphony::sim
