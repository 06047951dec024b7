// Answers about evidence as JSON, and their JSON Schemas, from one table of keys each
// (sim/answers/json_keys.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/evidence/step_fit.h"

namespace polyphony::sim {

nlohmann::json to_json(const StepCalibration& fitted);
std::string calibration_schema();  // of `polyphony calibrate` on step times

}  // namespace polyphony::sim
