// Paced ranks (`polyphony rehearse`): compute ops last `scale` times what `profile` says, everything
// else is this machine's.
#pragma once

#include "shared/hardware/hardware.h"

namespace polyphony {

struct PaceModel {
  HardwareProfile profile;
  double scale = 1;
};

}  // namespace polyphony
