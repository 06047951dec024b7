// What the shipped GPU profiles know of their own errors; sources row by row in the .cpp. How wide an
// interval is depends on what published rows the numbers were fitted to: of the stack, of the
// device. A device with the peaks of a fitted one is taken for it (memory, links and power may
// differ): an H200's kernels run as an H100's, given its memory rate (scenarios/measured/README.md);
// not tried on whole steps. Jitter: not known, no source that we have states it for single ops.
#pragma once

#include "shared/hardware/certainty.h"
#include "shared/hardware/devices.h"

namespace polyphony {

struct HardwareProfile;

// Residuals of one layout by what was fitted of its stack and device; where neither was, both add up
// as independent errors do.
struct Residuals {
  double known = 0, foreign = 0, borrowed = 0;
};
double residual_on(Footing footing, const Residuals& residuals);
// What of it is left to each layout once the device's own efficiencies are known: a borrowed device's
// kernels are another's, which is wrong alike in all that runs on it.
double own_residual(Footing footing, const Residuals& residuals);
const Residuals& shipped_residuals();

Certainty shipped_certainty(FittedOn fitted, Footing footing);
Footing footing_of(const Device& device, FittedOn fitted, const std::string& stack);

// Of a shipped GPU profile with the device and the stack that it has now: its certainty, and its
// step_error as half of the 90 % interval of a step that is matrix products alone.
void state_certainty(HardwareProfile& profile, FittedOn fitted);
// The same of any profile; those that are not shipped, or fitted to nothing, stay as they are.
void state_certainty(HardwareProfile& profile);

}  // namespace polyphony
