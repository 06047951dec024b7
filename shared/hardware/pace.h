// Emulated compute (`polyphony rehearse`): a rank sleeps for `scale` times the duration that
// `profile` predicts for a compute op. Everything else runs for real on this machine.
#pragma once

#include "shared/hardware/hardware.h"

namespace polyphony {

struct PaceModel {
  HardwareProfile profile;
  double scale = 1;
};

}  // namespace polyphony
