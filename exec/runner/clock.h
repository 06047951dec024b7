// Aligning the ranks' steady clocks, so that traces of several hosts share one time axis.
#pragma once

#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

// What to add to this rank's steady_now() to get rank 0's: the midpoint of the fastest of a few
// round trips (Cristian's algorithm). An offset smaller than half that round trip cannot be told
// from zero and is zero: ranks of one host share the clock. Collective.
Seconds clock_offset(Transport& transport);

}  // namespace polyphony::exec
