// Readable names for the part of a model that a rank holds.
#pragma once

#include <string>
#include <vector>

#include "shared/program/program.h"

namespace polyphony {

// Returns a name made from the rank's parameter groups, such as "vision stage 0 + language stage
// 2". Projectors are omitted.
std::string stage_name(const Program& program, Rank rank);
// Returns the names of all ranks, in one pass over the Program.
std::vector<std::string> stage_names(const Program& program);

}  // namespace polyphony
