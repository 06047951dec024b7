// Reads trace files and profiles (step_file.h) without a run folder as a measurement. The files
// hold one or several steps, with the ops of each step in one file or in a file per rank. The
// scenario that was run is given separately.
//
// The batch of a step is read from `batches.jsonl` in the folder of its first file, where a run
// writes it; if there is none, it is the scenario's batch of that step. Stages that the scenario
// does not split are split by the profile's times, as in a run. A trace of another batch, or of
// stages split with another profile, is rejected by the Program's hash: pass the scenario from the
// folder of the run.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "traces/evidence/measurement.h"

namespace polyphony::traces {

// Returns the measurement. `scenario` must have a legal layout and its samples. Throws InputError
// with the file if a file is missing, truncated or belongs to another Program, or if a rank is
// missing.
Measurement read_trace_files(const std::vector<std::string>& paths, const Scenario& scenario,
                             const HardwareProfile& profile, const Files& files);

}  // namespace polyphony::traces
