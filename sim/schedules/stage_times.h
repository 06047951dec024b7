// Times of modules' pieces from a CSV (sim/schedules/compared_schedules.h), one row each:
//   module           in the order of the data; the last is fed by all others
//   stage            0, 1, …: the finest piece that it is cut into
//   microbatch       0, 1, …; all; or a part of one: 3.0, 3.1. A module that has no work of a
//                    microbatch has no row of it; the last one has all
//   forward, backward_input, backward_weight   seconds, or with a unit: 1.5ms
//   bytes            kept from the forward to the end of the backward: digits, or 12MiB. May be left out
//   message          seconds to the next stage. May be left out
// Errors: InputError naming file, line and column.
#pragma once

#include <string>

#include "sim/schedules/compared_schedules.h"

namespace polyphony::sim {

// `microbatches`: how many, where every row says all; 0: the file must say it.
StageTimes read_stage_times(const std::string& text, const std::string& file, int microbatches);

}  // namespace polyphony::sim
