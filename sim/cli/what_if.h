// `--set`: predicts the scenario without the changes too, and compares both.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/command.h"
#include "sim/step_answers/step.h"
#include "sim/step_answers/what_if.h"

namespace polyphony::sim {

// Predicts the layout of the scenario that the arguments name with the same options as the changed
// one.
Unchanged answer_unchanged(const Arguments& args, const StepOptions& options);

// A table: one line a figure, as written, changed and the difference. Empty where the scenario has
// no layout without the changes.
std::string side_by_side(const WhatIf& what_if);
std::vector<std::string> texts_of(const std::vector<Override>& overrides);

}  // namespace polyphony::sim
