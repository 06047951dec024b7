// What the commands of `polyphony` (sim/commands/commands.h) share: the scenario that they read,
// its notes, the schedule that replaces its own, and the memory of this machine.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared/error.h"
#include "sim/cli/arguments.h"
#include "sim/console/failure.h"
#include "sim/load/load.h"
#include "sim/prediction/need.h"

namespace polyphony::sim {

// Loads a scenario (sim/load/load.h). Its notes (how modules differ from published models) wait for
// print_scenario_notes().
Scenario open_scenario(const std::string& path, const std::vector<Override>& overrides = {},
                       const std::string& downloads = "", const std::string& phase = "");
// The same with the path and the phase that the arguments name: "scenario" and "phase".
Scenario open_scenario(const Arguments& args, const std::vector<Override>& overrides = {});
// Reads the samples of a scenario that has been read without them; its notes wait likewise.
void open_samples(Scenario& scenario, const std::string& downloads = "");
// Prints these notes on stderr, once: main calls it after a command's result.
void print_scenario_notes();
std::string lower_case(std::string text);
// Sets the layout's schedule by name (upper and lower case alike), or its actions from a file
// (shared/schedule/action_text.h), which also gives the number of virtual stages. Leaves the layout
// alone where `given` is empty. Throws InputError if it is neither, or not legal for the layout.
void apply_schedule(Scenario& scenario, const std::string& given);
// Throws NoAnswer if this machine has too little memory to predict the layout.
void require_memory(const Scenario& scenario, const Layout& layout, const NeedOptions& options);
// Prints notes on an answer on stderr.
void print_notes(const Scenario& scenario, const std::vector<std::string>& notes);

}  // namespace polyphony::sim
