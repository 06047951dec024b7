// What people call the part of a model that a rank holds.
#pragma once

#include <string>
#include <vector>

#include "shared/program/program.h"

namespace polyphony {

// "vision stage 0 + language stage 2": of its parameter groups; projectors go without a word.
std::string stage_name(const Program& program, Rank rank);
// By rank, in one pass.
std::vector<std::string> stage_names(const Program& program);

}  // namespace polyphony
