// Answers about evidence as JSON, and their JSON Schemas, from one table of keys each
// (sim/text/json_keys.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/evidence/step_fit.h"

namespace polyphony::sim {

nlohmann::json to_json(const StepCalibration& fitted);
std::string calibration_schema();  // of `polyphony calibrate`: of runs, of step times, of both

// A profile held against step times: what `polyphony profile check` says.
struct CheckedStep {
  std::string source;
  Seconds predicted{}, low{}, high{};  // 90 %
  Seconds measured{};
  bool inside = false, beyond = false;  // of them; beyond 99.9 %
};
struct ProfileCheck {
  std::vector<CheckedStep> steps;
  std::vector<std::string> implausible;
};
nlohmann::json to_json(const ProfileCheck& check);
std::string check_schema();

}  // namespace polyphony::sim
