// Searches a scenario for the commands `sweep` and `ask`: shows progress, prints the answer, and
// writes the files that options name.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/cli/command.h"
#include "sim/cli/what_if.h"
#include "sim/sweep/goal_sweep.h"
#include "sim/text/question_words.h"

namespace polyphony::sim {

// One search and its answer.
struct SweepAnswer {
  GoalSweep found;
  HardwareProfile profile;
  QuestionWords asked;
  nlohmann::json json;
};

// Searches with the options of add_search_options() (sim/cli/sweep_options.h), and shows `label`
// with the progress. `journaled`: with the journals of --journal, which are of one question.
GoalSweep search_shown(const Arguments& args, const Scenario& scenario,
                       const HardwareProfile& profile, const std::string& label,
                       bool journaled = true);

// Searches, and prints the answer unless it is asked for as JSON. `unchanged`: called after the
// search; returns the best layout without changes to the scenario, if there are changes.
SweepAnswer answer_sweep(const Arguments& args, const Scenario& written,
                         const HardwareProfile& profile, const std::string& label,
                         const std::function<std::optional<Unchanged>()>& unchanged = {});

// Returns the search with its answer as JSON; prints nothing.
SweepAnswer answer_of(GoalSweep found, const HardwareProfile& profile);

// With --for: adds what was found for the framework to the answer's JSON, and returns it as text;
// otherwise returns an empty text.
std::string add_target(const Arguments& args, SweepAnswer& answered);

// Prints the answer if it is asked for as JSON, then calls `save`, and writes the files that
// options name. `title`: of the page. Returns the command's exit code.
int finish_sweep(const Arguments& args, const SweepAnswer& answer, const std::string& title,
                 const std::function<void()>& save = {});

}  // namespace polyphony::sim
