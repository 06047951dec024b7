// Answers about evidence as JSON, and their JSON Schemas. Each answer and its schema come from one
// table of keys (sim/text/json_keys.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/evidence/step_fit.h"

namespace polyphony::sim {

nlohmann::json to_json(const StepCalibration& fitted);
std::string calibration_schema();  // of `polyphony calibrate`, from runs, step times or both

// A profile checked against measured step times: the answer of `polyphony profile check`.
struct CheckedStep {
  std::string source;
  Seconds predicted{}, low{}, high{};  // with its 90 % interval
  Seconds measured{};
  bool inside = false, beyond = false;  // inside the 90 % interval; outside the 99.9 % interval
};
struct ProfileCheck {
  std::vector<CheckedStep> steps;
  std::vector<std::string> implausible;
};
nlohmann::json to_json(const ProfileCheck& check);
std::string check_schema();

}  // namespace polyphony::sim
