// The answers of `polyphony profile show`, `diff`, `merge` and `check` as stdout shows them.
#pragma once

#include <string>

#include "shared/hardware/hardware.h"
#include "sim/evidence/profile_check.h"

namespace polyphony::sim {

// Returns every parameter with its deviation, and where the numbers come from.
std::string shown_text(const HardwareProfile& profile);
// Returns the parameters that differ.
std::string difference_text(const HardwareProfile& first, const HardwareProfile& second);
// Returns the parameters of two profiles and of the one that they were merged to, as far as the
// latter states their deviations.
std::string merged_text(const HardwareProfile& first, const HardwareProfile& second,
                        const HardwareProfile& merged);
std::string check_text(const HardwareProfile& profile, const ProfileCheck& check);

}  // namespace polyphony::sim
