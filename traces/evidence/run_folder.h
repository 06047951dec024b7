// Reads the folder of a run as a measurement: the output of `polyphony run` and `polyphony
// rehearse` (file names: shared/files/run_paths.h).
//
//   <folder>/scenario.json                      the resolved scenario with its layout
//   <folder>/pace.json                          of a rehearsal: {"scale": 6, "profile": {…}}
//   <folder>/trace/batches.jsonl                the batches of the traced steps
//   <folder>/trace/plans.bin                    their plans, if they were planned during training
//   <folder>/trace/step-<n>.rank-<r>.json       their ops (traces/format/chrome_json.h)
#pragma once

#include <string>

#include "traces/evidence/measurement.h"

namespace polyphony::traces {

// Returns the measurement. Throws InputError with the file if a file is missing, truncated or
// belongs to another Program.
Measurement read_run_folder(const std::string& folder, const Files& files);

// Returns the contents of pace.json.
std::string pace_text(const PaceModel& pace);

}  // namespace polyphony::traces
