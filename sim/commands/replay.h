// The parts of `polyphony replay` (sim/commands/replay.cpp, sim/commands/replay_kernels.cpp).
#pragma once

#include <string>

#include "sim/cli/command.h"
#include "traces/replay/measured_step.h"

namespace polyphony::sim {

// Of a profiler's traces (sim/commands/replay_kernels.cpp).
void add_kernel_options(Arguments& args);
bool are_profiles(const Arguments& args);           // files, without a scenario
void refuse_kernel_options(const Arguments& args);  // of a run of ours
int replay_kernels_command(const Arguments& args);
traces::Speedup parse_speedup(const std::string& text);  // --faster CLASS=TIMES

}  // namespace polyphony::sim
