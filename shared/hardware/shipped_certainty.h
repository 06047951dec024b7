// What the shipped GPU profiles know of their own errors; sources row by row in the .cpp. Jitter:
// not known, no source that we have states it for single ops.
#pragma once

#include "shared/hardware/certainty.h"
#include "shared/hardware/devices.h"

namespace polyphony {

Certainty shipped_certainty(FittedOn fitted);

}  // namespace polyphony
