// Opens and reads RUN... of `compare`, `calibrate` and `report`: folders of runs, and trace files
// with --scenario.
#pragma once

#include <vector>

#include "sim/cli/command.h"
#include "traces/evidence/measurement.h"
#include "traces/kineto/ranks.h"

namespace polyphony::sim {

// Reads files from this machine's disk.
traces::Files disk_files();
void add_measurement_options(Arguments& args);
// --bar, of commands that judge a prediction (traces::Comparison::verdict()).
void add_bar(Arguments& args);
// Returns the measurements in the order given; all trace files together make one, the last.
std::vector<traces::Measurement> read_measurements(const Arguments& args);
std::vector<traces::Measurement> read_measurements(const Arguments& args,
                                                   const std::vector<std::string>& paths);

// Returns whether a file is an exported report of Nsight Systems (traces/nsys/nsys.h). Throws
// InputError if it is one that was not exported.
bool is_report(const std::string& path);
// Reads traces of PyTorch's profiler, one of each rank, and reports of Nsight Systems. The folder
// of a run stands for its profiles, which must be of one step. print_notes() prints their notes on
// stderr.
// `step`: how the names of the annotations that mark steps begin.
traces::RankSet read_profiles(const std::vector<std::string>& paths, const std::string& step,
                              const std::string& progress);
void print_notes(const traces::RankSet& ranks);

}  // namespace polyphony::sim
