// Recorded runs beside their predictions: what `compare`, `calibrate`, `rehearse` and the report
// show.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "sim/answers/recorded.h"
#include "sim/prediction/predict.h"
#include "traces/compare/compare.h"

namespace polyphony::sim {

struct RunComparison {
  std::string folder;
  std::string layout;
  Prediction prediction;  // of the recorded Program
  traces::Comparison comparison;
};

RunComparison compare_run(const RecordedRun& run, const HardwareProfile& profile);

}  // namespace polyphony::sim
