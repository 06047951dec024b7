// Answers about evidence as JSON, and their JSON Schemas. Each answer and its schema come from one
// table of keys (sim/text/json_keys.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/evidence/fitted_profile.h"
#include "sim/evidence/profile_check.h"

namespace polyphony::sim {

nlohmann::json to_json(const StepCalibration& fitted);
// The keys of both, if a profile was fitted to runs and to step times.
nlohmann::json to_json(const FittedProfile& fitted);
std::string calibration_schema();  // of `polyphony calibrate`, from runs, step times or both

nlohmann::json to_json(const ProfileCheck& check);
std::string check_schema();

}  // namespace polyphony::sim
