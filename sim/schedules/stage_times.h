// Reads the times of modules' pieces from a CSV file (sim/schedules/compared_schedules.h). Columns:
//   module           modules in the order of the data; all others feed the last one
//   stage            0, 1, …: a piece, the finest unit that the module is cut into
//   microbatch       0, 1, …; all; or a part of one: 3.0, 3.1. A module that does not process a
//                    microbatch has no row for it; the last module has all microbatches
//   forward, backward_input, backward_weight   seconds, or with a unit: 1.5ms
//   bytes            saved from the forward to the end of the backward: digits, or 12MiB. Optional
//   message          seconds to send to the next stage. Optional
// Throws InputError naming file, line and column.
#pragma once

#include <string>

#include "sim/schedules/compared_schedules.h"

namespace polyphony::sim {

// `microbatches`: their number, if every row is for all microbatches; 0: taken from the file.
StageTimes read_stage_times(const std::string& text, const std::string& file, int microbatches);
// Returns whether some forward saves bytes for its backward (column "bytes").
bool has_bytes(const StageTimes& times);

}  // namespace polyphony::sim
