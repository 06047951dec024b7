// --execution-trace of `simulate` and `replay`: writes a simulated step as files for other
// simulators.
#pragma once

#include "shared/hardware/hardware.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "sim/cli/command.h"

namespace polyphony::sim {

void add_execution_trace(Arguments& args);
// If the option was given, writes FOLDER/rank.<r>.et of every rank, one after another, and
// FOLDER/comm_groups.json.
void write_execution_trace(const Arguments& args, const Program& program, const Timeline& timeline,
                           const Cluster& cluster, const HardwareProfile& profile);

}  // namespace polyphony::sim
