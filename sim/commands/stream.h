// `simulate --batches`: percentiles of step and memory over the scenario's data, how often a batch
// does not fit, and the samples that take the memory.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"
#include "sim/cli/command.h"

namespace polyphony::sim {

void add_stream_options(Arguments& args);
// Predicts and prints the whole answer; returns the command's exit code.
int answer_stream(const Arguments& args, const Scenario& scenario, const Layout& layout,
                  const HardwareProfile& profile);

}  // namespace polyphony::sim
