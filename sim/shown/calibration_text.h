// What a calibration found, for people.
#pragma once

#include <string>
#include <vector>

#include "sim/evidence/step_fit.h"
#include "traces/calibrate/calibrate.h"

namespace polyphony::sim {

// `unseen`: of each run its error by a fit to the others; empty: not asked for.
std::string calibration_text(const traces::Calibration& fitted, const std::vector<double>& unseen);
std::string calibration_text(const StepCalibration& fitted);

// A parameter's value in three digits, times with their unit.
std::string parameter_text(const std::string& key, double value);

}  // namespace polyphony::sim
