// The roofline profile of a device: its peaks and links, and the efficiencies of its fit. Nothing
// in it was measured on the user's machine.
#pragma once

#include "shared/hardware/devices.h"

namespace polyphony {

// Returns the profile, called as default_profile() says, under this project's own software stack. A
// device without a fit has the assumed, deliberately slow efficiencies of cpu-core.
HardwareProfile roofline_profile(const ShippedDevice& device);

}  // namespace polyphony
