// The order of a compared schedule as the text of a file.
#pragma once

#include <string>

#include "sim/schedules/compared_schedules.h"

namespace polyphony::sim {

// Returns the order of a schedule that can run: PyTorch's CSV (`csv`) or our own form
// (shared/schedule/action_text.h) where all modules are one chain, else a CSV whose cells name the
// module ("vision 0F3"), as module_actions.h reads it. Microbatches that are cut into parts are
// written as in the CSV of times (3.1); such a text documents the order, and no reader takes it.
std::string order_text(const ComparedSchedule& row, bool csv);

}  // namespace polyphony::sim
