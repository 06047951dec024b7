// The hardware profile and software stack that a scenario is predicted with.
//   profile  `name`, else the scenario's own (cluster/profile, else its device's)
//   stack    `stack`, else training/software where it is a shipped one, else the profile's
#pragma once

#include <string>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario_json.h"

namespace polyphony {

// `name`: a shipped profile or a file; both may be empty: not said. Errors: InputError.
HardwareProfile scenario_profile(const Scenario& scenario, const LoadText& load,
                                 const std::string& name = "", const std::string& stack = "");

}  // namespace polyphony
