// Reads actions on stages of modules from a user's CSV file. A row is a rank; a cell is an action
// that names its module: "vision 0F3", "language 1B0". Stages count from 0 in each module. If a
// microbatch has several parts in a module, they run in one action, one after another.
#pragma once

#include <string>
#include <vector>

#include "sim/schedules/compared_schedules.h"

namespace polyphony::sim {

// Returns whether a cell names a module. A file in which none does uses stages of one chain
// (shared/schedule/action_text.h).
bool names_modules(const std::string& text, const StageTimes& times);

// Returns the actions by rank. In an action `branch` is the index of the module and `work` the
// microbatch. Throws InputError naming file, line and cell.
std::vector<Actions> read_module_actions(const std::string& text, const std::string& file,
                                         const StageTimes& times);

}  // namespace polyphony::sim
