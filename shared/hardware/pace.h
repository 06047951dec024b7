// Emulated compute (`polyphony rehearse`): a compute op takes max(own, scale · predicted). `own` is
// the time that this machine takes to run the op, and `predicted` the duration that `profile`
// predicts for it; the rank sleeps for the difference. Everything else (messages, collectives,
// updates) takes the time of this machine.
#pragma once

#include "shared/hardware/hardware.h"

namespace polyphony {

struct PaceModel {
  HardwareProfile profile;
  double scale = 1;
};

}  // namespace polyphony
