// RUN... of `compare`, `calibrate` and `report`: folders of runs, and trace files with --scenario.
// The place where their files are opened.
#pragma once

#include <vector>

#include "sim/commands/command.h"
#include "traces/evidence/measurement.h"

namespace polyphony::sim {

// Files of this machine's disk.
traces::Files disk_files();
void add_measurement_options(Arguments& args);
// In the order given; all trace files together make one, the last.
std::vector<traces::Measurement> read_measurements(const Arguments& args);
std::vector<traces::Measurement> read_measurements(const Arguments& args,
                                                   const std::vector<std::string>& paths);

}  // namespace polyphony::sim
