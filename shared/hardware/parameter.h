// A hardware profile's parameters by their keys (parameter_keys() of shared/hardware/hardware_json.h),
// for tables and fits over whatever a profile's errors name.
#pragma once

#include <string>

#include "shared/hardware/hardware.h"

namespace polyphony {

// Times in seconds; a correction that the profile lacks is 1.
double parameter(const HardwareProfile& profile, const std::string& key);
struct ParameterRange {
  double low = 0, high = 0;
};
// What the profile's reader accepts for it.
ParameterRange parameter_range(const HardwareProfile& profile, const std::string& key);

}  // namespace polyphony
