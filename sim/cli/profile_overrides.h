// `--set profile.KEY=VALUE`: single values of a hardware profile said anew.
#pragma once

#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/scenario_io/overrides_json.h"

namespace polyphony::sim {

bool of_profile(const Override& override);
// InputError: no such key, no such value.
HardwareProfile overridden(HardwareProfile profile, const std::vector<Override>& overrides);

}  // namespace polyphony::sim
