// What an answer is predicted with, and on what measurements that rests.
#pragma once

#include <string>

#include "shared/hardware/hardware.h"

namespace polyphony::sim {

// "profile h100-roofline, stack polyphony".
std::string describe(const HardwareProfile& profile);

// One sentence: whether the shipped profile was fitted to published measurements of its software
// stack and device. Empty for a profile that states its own error.
std::string footing_text(const HardwareProfile& profile);

}  // namespace polyphony::sim
