// A run's folder, read back: what `polyphony run` recorded, ready to be compared and fitted.
//   <folder>/scenario.json                      the resolved scenario with its layout
//   <folder>/pace.json                          of a rehearsal: {"scale": 6, "profile": {…}}
//   <folder>/trace/batches.jsonl                the batches of the traced steps
//   <folder>/trace/step-<n>.rank-<r>.json       their ops (traces/format/chrome_json.h)
// Steps of one layout have the same ops; sizes differ with the data. The Program kept is that of
// the middle step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "shared/scenario/scenario.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {

struct RecordedRun {
  std::string folder;
  Scenario scenario;
  Program program;
  std::vector<Timeline> steps;         // complete, of all ranks
  std::vector<Program> step_programs;  // by step: the same ops, that step's sizes
  std::optional<PaceModel> pace;
};

std::string pace_text(const PaceModel& pace);  // the contents of pace.json

// Missing, truncated or foreign files: InputError naming the file.
RecordedRun load_recorded(const std::string& folder);

}  // namespace polyphony::sim
