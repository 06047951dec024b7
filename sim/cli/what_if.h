// `--set`: the question as it is written, asked too, and both answers side by side.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/command.h"
#include "sim/step_answers/step.h"
#include "sim/step_answers/what_if.h"

namespace polyphony::sim {

// Of the layout of the scenario at `path`, predicted as the changed one is.
Unchanged answer_unchanged(const std::string& path, const ProfileChoice& profile,
                           const StepOptions& options);

// A line a figure: as written, changed, difference.
std::string side_by_side(const WhatIf& what_if);
std::vector<std::string> texts_of(const std::vector<Override>& overrides);

}  // namespace polyphony::sim
