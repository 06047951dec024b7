// Trace files alone as a measurement: of one step or several, each step's ops in one file or in a
// file per rank (traces/format/chrome_json.h), and the scenario that was run.
//   A step's batch is that of `batches.jsonl` beside its first file when there is one, as a run
//   leaves it, else the scenario's own of that step. Stages that the scenario does not split are split
//   by the profile's seconds, as a run of it splits them. A trace of another batch, or of stages
//   split by another profile, is refused by the Program's hash: give the scenario that the run left
//   in its folder.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "traces/evidence/measurement.h"

namespace polyphony::traces {

// `scenario`: has a legal layout, and its samples. Missing, truncated, foreign files and missing
// ranks: InputError naming the file.
Measurement read_trace_files(const std::vector<std::string>& paths, const Scenario& scenario,
                             const HardwareProfile& profile, const Files& files);

}  // namespace polyphony::traces
