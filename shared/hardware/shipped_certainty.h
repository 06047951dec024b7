// The stated errors of profiles that rest on a fit; sources row by row in the .cpp. The width of an
// interval depends on which published measurements were fitted: of the software stack, of the
// device.
//   A device with the same peaks as a fitted one counts as calibrated (memory, links and power may
//   differ). An H200's kernels run like an H100's, given its memory rate
//   (scenarios/measured/README.md); this was not tested on whole steps.
//   A fit of too few measurements (Fit::calibrated) counts as borrowed.
//   Jitter is unknown: we have no source that states it for single ops.
#pragma once

#include "shared/hardware/certainty.h"
#include "shared/hardware/devices.h"

namespace polyphony {

struct HardwareProfile;

// Relative residual errors of one layout, by calibration basis (Footing): calibrated, uncalibrated
// stack, borrowed fit of another device.
struct Residuals {
  double known = 0, foreign = 0, borrowed = 0;
};
// Returns the residual for a calibration basis. If the stack is uncalibrated and the device's fit
// is borrowed, the two add up like independent errors.
double residual_on(Footing footing, const Residuals& residuals);
// Returns the part of the residual that differs between layouts on the same device. The error of a
// borrowed fit is not in it: it is the same for everything that runs on the device, and vanishes
// once the device's own efficiencies are measured.
double own_residual(Footing footing, const Residuals& residuals);
const Residuals& shipped_residuals();

Certainty shipped_certainty(const Fit& fit, Footing footing);
// Returns the calibration basis of a stack on a device whose profile has the fit. A fit that a
// device file states itself is one of that device, without measurements of any stack.
Footing footing_of(const Device& device, const Fit& fit, const std::string& stack);

// Sets the certainty of a profile with the fit, for the device and stack that it has now, and its
// step_error: half of the 90 % interval of a step that consists of GEMMs only.
void state_certainty(HardwareProfile& profile, const Fit& fit);
// The same for any profile. Leaves profiles that are not shipped, or are not fitted, unchanged.
void state_certainty(HardwareProfile& profile);

}  // namespace polyphony
