// The comparison of a measured run with its prediction, as shown by `polyphony compare`, `polyphony
// rehearse` and the report of a run.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "sim/prediction/predict.h"
#include "traces/compare/compare.h"
#include "traces/evidence/measurement.h"

namespace polyphony::sim {

struct RunComparison {
  std::string source;          // folder of the measurement
  std::string layout;          // in the words of a scenario file, as JSON has it
  std::string profile, stack;  // used for the prediction
  Prediction prediction;       // of the Program of the middle step
  traces::Comparison comparison;
  std::string question{};  // headline() of the run's scenario; empty: not printed
  bool uncalibrated =
      false;            // the profile ships with the program and assumes this machine's figures
  std::string words{};  // layout_words() of the layout, for tables
};

// Predicts the Program of every measured step by simulation and compares the two. Throws InputError
// if the cluster does not have a link that the run used.
RunComparison compare_run(const traces::Measurement& measured, const HardwareProfile& profile);

}  // namespace polyphony::sim
