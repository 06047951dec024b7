// What an answer rests on.
#pragma once

#include <string>

#include "shared/hardware/hardware.h"

namespace polyphony::sim {

// "profile h100-roofline, stack polyphony".
std::string describe(const HardwareProfile& profile);

// What of the stack and the device a shipped profile was fitted to. Empty: its maker states it.
std::string footing_text(const HardwareProfile& profile);

}  // namespace polyphony::sim
