// A change of a layout in the words of a framework, and what a search for it found.
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

// What a search for a framework (SweepOptions::target) found: layouts that it can run, and the best
// of all layouts.
struct TargetFound {
  TargetVersion target = Target::megatron_lm;
  bool runs = false;                 // it can run the rows of the answer
  std::string best;                  // in words, the best layout of all, if it cannot run that one
  Seconds best_step{};               // of that layout
  double slower = 0;                 // by which the step of row 1 is longer, relative
  std::vector<std::string> missing;  // what that layout needs and the framework does not have
};
TargetFound target_found(const Scenario& scenario, const HardwareProfile& profile,
                         const Sweep& sweep, const TargetVersion& target);
// Returns a few sentences.
std::string found_text(const TargetFound& found);

}  // namespace polyphony::sim
