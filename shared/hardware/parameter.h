// Access to a hardware profile's parameters by key (parameter_keys() of
// shared/hardware/hardware_json.h), for tables and fits over the parameters that a profile's errors
// name.
#pragma once

#include <string>

#include "shared/hardware/hardware.h"

namespace polyphony {

// Returns the value of a parameter, times in seconds; 1 for a correction that the profile lacks.
double parameter(const HardwareProfile& profile, const std::string& key);
struct ParameterRange {
  double low = 0, high = 0;
};
// Returns the range that the profile's reader accepts for the parameter.
ParameterRange parameter_range(const HardwareProfile& profile, const std::string& key);

}  // namespace polyphony
