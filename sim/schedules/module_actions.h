// Actions of a person's file on stages of modules, each module's own: a CSV, a row a rank, a cell an action that names its
// module: "vision 0F3", "language 1B0". Stages count from 0 in each module; what a microbatch has of a module that is
// cut into parts runs in one action, part after part.
#pragma once

#include <string>
#include <vector>

#include "sim/schedules/compared_schedules.h"

namespace polyphony::sim {

// Whether a cell names a module; files that name none are of one chain (shared/schedule/action_text.h).
bool names_modules(const std::string& text, const StageTimes& times);

// By rank: `branch` is the module's position, `work` the microbatch. Errors: InputError naming file, line and cell.
std::vector<Actions> read_module_actions(const std::string& text, const std::string& file,
                                         const StageTimes& times);

}  // namespace polyphony::sim
