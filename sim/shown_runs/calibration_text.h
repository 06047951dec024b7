// The result of a calibration as stdout shows it.
#pragma once

#include <string>
#include <vector>

#include "sim/evidence/step_fit.h"
#include "traces/calibrate/calibrate.h"

namespace polyphony::sim {

// `unseen`: for each run its error by a fit to the other runs; empty: not computed. `layouts`: each
// run and its layout in words.
std::string calibration_text(const traces::Calibration& fitted, const std::vector<double>& unseen,
                             const std::vector<std::string>& layouts);
std::string calibration_text(const StepCalibration& fitted);

// A parameter's value in three digits, times with their unit.
std::string parameter_text(const std::string& key, double value);

}  // namespace polyphony::sim
