// A hardware profile fitted to all that was measured: tables of collectives, then runs of
// polyphony, then step times. Each fit starts from the profile of the one before.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/evidence/step_fit.h"
#include "traces/calibrate/calibrate.h"
#include "traces/calibrate/collective_fit.h"

namespace polyphony::sim {

struct FittedProfile {
  HardwareProfile profile;
  std::optional<traces::Calibration> runs;  // set if there are runs
  // By run: the relative error of its step by a fit to the other runs. Empty for a single run.
  std::vector<double> unseen;
  std::optional<StepCalibration> steps;  // set if there are step times
};

// Fits the profile to runs and step times, either of which may be empty. `name`: of the result.
// Throws InputError as calibrate_steps() does.
FittedProfile fit_profile(const HardwareProfile& prior,
                          const std::vector<traces::Measurement>& runs,
                          const std::vector<StepEvidence>& steps, const std::string& name);

// Returns the key of the parameter that a table measures: rings inside a node, or between nodes.
const char* ring_parameter(const traces::CollectiveTimes& table);
// Returns the fit's profile. The stated error of that parameter is what the rows of the table
// differ by after the fit, at least 2 % (assumed).
HardwareProfile fitted_rings(const traces::CollectiveFit& fit,
                             const traces::CollectiveTimes& table);

}  // namespace polyphony::sim
