// The hardware profile and software stack that a scenario is predicted with.
//   profile  `name`, else the scenario's own (cluster/profile, else its device's)
//   layer times  of modules whose times the scenario gives, those
//   stack    `stack`, else training/software where it is a shipped one, else the profile's
#pragma once

#include <string>

#include "shared/hardware/hardware.h"
#include "shared/scenario_io/scenario_json.h"

namespace polyphony {

// `name`: a shipped profile or a file; both may be empty: not said. Errors: InputError.
HardwareProfile scenario_profile(const Scenario& scenario, const LoadText& load,
                                 const std::string& name = "", const std::string& stack = "");

// The scenario's measured times of layers, in place of the profile's of these modules.
void take_layer_times(const Scenario& scenario, HardwareProfile& profile);

}  // namespace polyphony
