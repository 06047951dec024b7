// A run's folder as a measurement: what `polyphony run` and `rehearse` leave
// (names: shared/files/run_paths.h).
//   <folder>/scenario.json                      the resolved scenario with its layout
//   <folder>/pace.json                          of a rehearsal: {"scale": 6, "profile": {…}}
//   <folder>/trace/batches.jsonl                the batches of the traced steps
//   <folder>/trace/plans.bin                    their plans, where they were planned live
//   <folder>/trace/step-<n>.rank-<r>.json       their ops (traces/format/chrome_json.h)
#pragma once

#include <string>

#include "traces/evidence/measurement.h"

namespace polyphony::traces {

// Missing, truncated or foreign files: InputError naming the file.
Measurement read_run_folder(const std::string& folder, const Files& files);

std::string pace_text(const PaceModel& pace);  // the contents of pace.json

}  // namespace polyphony::traces
