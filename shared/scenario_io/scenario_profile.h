// The hardware profile and software stack that a scenario is predicted with.
//   profile      `name`; if empty, the scenario's own (cluster/profile, or its device's default)
//   layer times  the scenario's replace the profile's, module by module
//   stack        `stack`; if empty, training/software if a stack of this name is shipped; otherwise
//                the profile's
#pragma once

#include <string>

#include "shared/hardware/hardware.h"
#include "shared/scenario_io/scenario_json.h"

namespace polyphony {

// Returns the profile with stack and layer times as above. `name` is a shipped profile or a file;
// `name` and `stack` may be empty (not given). Throws InputError if either does not exist, or if
// the device has no peak rate in the precision of the training.
HardwareProfile scenario_profile(const Scenario& scenario, const LoadText& load,
                                 const std::string& name = "", const std::string& stack = "");

// Replaces the profile's measured layer times by the scenario's, for the modules that have any.
void take_layer_times(const Scenario& scenario, HardwareProfile& profile);

}  // namespace polyphony
