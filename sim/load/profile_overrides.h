// `--set profile.KEY=VALUE`: replaces single values of a hardware profile.
#pragma once

#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/scenario_io/overrides_json.h"

namespace polyphony::sim {

bool of_profile(const Override& override);
// Returns the profile with the overrides applied. Throws InputError for an unknown key or an
// illegal value.
HardwareProfile overridden(HardwareProfile profile, const std::vector<Override>& overrides);

}  // namespace polyphony::sim
