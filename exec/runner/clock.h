// Aligning the ranks' steady clocks, so that traces of several hosts share one time axis.
#pragma once

#include "exec/transport/communicator.h"
#include "traces/format/op_journal.h"

namespace polyphony::exec {

// What to add to this rank's steady_now() to get rank 0's: the midpoint of the fastest of a few
// round trips (Cristian's algorithm), at most half that trip off. An offset smaller than that cannot be
// told from zero and is zero: ranks of one host share the clock. Collective.
traces::ClockSample compare_clock(Transport& transport);

}  // namespace polyphony::exec
