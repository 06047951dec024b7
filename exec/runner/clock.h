// Aligns the steady clocks of the ranks, so that traces of several hosts share one time axis.
#pragma once

#include "exec/transport/communicator.h"
#include "traces/format/op_journal.h"

namespace polyphony::exec {

// Returns the offset to add to this rank's steady_now() to get rank 0's: the midpoint of the
// fastest of a few round trips (Cristian's algorithm). Its error is at most half of that round
// trip. An offset smaller than the error cannot be told from zero and is returned as zero; ranks of
// one host share the clock. Collective.
traces::ClockSample compare_clock(Transport& transport);

}  // namespace polyphony::exec
