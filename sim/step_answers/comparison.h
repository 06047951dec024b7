// A measured step and its prediction, as `compare`, `rehearse` and the report show them.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "sim/prediction/predict.h"
#include "traces/compare/compare.h"
#include "traces/evidence/measurement.h"

namespace polyphony::sim {

struct RunComparison {
  std::string source;  // of the measurement: its folder
  std::string layout;
  std::string profile, stack;  // that it was predicted with
  Prediction prediction;       // of the measured Program
  traces::Comparison comparison;
  std::string question{};  // headline() of the run's scenario; empty: not printed
  bool uncalibrated =
      false;  // the profile ships with the program and assumes this machine's figures
};

// Errors: InputError where the cluster lacks a link that the run used.
RunComparison compare_run(const traces::Measurement& measured, const HardwareProfile& profile);

}  // namespace polyphony::sim
