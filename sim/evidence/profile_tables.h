// Hardware profiles as tables: one profile, two profiles compared, and a plausibility check.
//   deviation  relative standard deviation, from the profile's stated errors
//              (shared/hardware/certainty.h); none: not stated
//   plausible  a value at most kFar times outside the range of shipped profiles of its kind (with
//              or without NCCL), whose error is at most a factor of e. Values that the reader of
//              profiles rejects cannot occur here
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "shared/hardware/hardware.h"

namespace polyphony::sim {

inline constexpr double kFar = 3;  // assumed

struct ShownParameter {
  std::string key;
  double value = 0;
  std::optional<double> deviation;
};
// Returns every parameter except corrections that are 1.
std::vector<ShownParameter> parameters_of(const HardwareProfile& profile);

struct ParameterDifference {
  std::string key;
  double first = 0, second = 0;
  std::optional<double> deviations;  // ln(second / first) in units of both's combined deviation
};
// Returns the parameters that differ.
std::vector<ParameterDifference> differences_of(const HardwareProfile& first,
                                                const HardwareProfile& second);

// Returns one line for each implausible parameter.
std::vector<std::string> implausible(const HardwareProfile& profile);

nlohmann::json shown_json(const HardwareProfile& profile);
nlohmann::json difference_json(const HardwareProfile& first, const HardwareProfile& second);
std::string shown_schema();       // of `polyphony profile show`
std::string difference_schema();  // of `polyphony profile diff`

}  // namespace polyphony::sim
