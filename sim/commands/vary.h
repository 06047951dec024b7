// `sweep --vary`: searches once for each value and prints where the best layout changes
// (sim/cli/variations.h). If a value of the layout is varied, each layout is predicted, nothing is
// searched, and an illegal layout is a row with the reason.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/cli/command.h"
#include "sim/sweep/goal_sweep.h"
#include "sim/sweep/vary.h"

namespace polyphony::sim {

using Answer = std::function<GoalSweep(const Scenario&, const HardwareProfile&)>;
// Answers each question and prints all answers in the format asked for; for two variations the
// table is followed by a map of the best placements. Returns the exit code: infeasible where no
// question has an answer. `goal`: overrides of all questions, applied before --set.
int vary(const Arguments& args, const std::string& path, const std::vector<std::string>& texts,
         const std::vector<Override>& goal, const Answer& answer);

}  // namespace polyphony::sim
