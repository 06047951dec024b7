// `--vary PATH=A,B,C` and `PATH=A..B`: searches once for each value and prints where the best
// layout changes. A..B doubles from A as long as it is at most B; several --vary are combined, each
// value with each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/cli/command.h"
#include "sim/sweep/goal_sweep.h"
#include "sim/sweep/vary.h"

namespace polyphony::sim {

// Whether one of them names a value of the layout: then each layout is predicted, nothing is
// searched, and an illegal layout is a row with the reason.
bool varies_layout(const std::vector<std::string>& texts);
// Errors: InputError names what is wrong with the text.
Variation parse_variation(const std::string& text);
// Every combination of values, the last variation fastest.
std::vector<std::vector<std::string>> combinations(const std::vector<Variation>& variations);

using Answer = std::function<GoalSweep(const Scenario&, const HardwareProfile&)>;
// Answers each question and prints all answers in the format asked for; for two variations the
// table is followed by a map of the best placements. Returns the exit code: infeasible where no
// question has an answer. `goal`: overrides of all questions, applied before --set.
int vary(const Arguments& args, const std::string& path, const std::vector<std::string>& texts,
         const std::vector<Override>& goal, const Answer& answer);

}  // namespace polyphony::sim
