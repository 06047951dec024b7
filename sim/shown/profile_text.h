// What an answer rests on.
#pragma once

#include <string>

#include "shared/hardware/hardware.h"

namespace polyphony::sim {

// "profile h100-roofline, stack polyphony".
std::string describe(const HardwareProfile& profile);

}  // namespace polyphony::sim
