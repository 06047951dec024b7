#include "sim/cli/command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "shared/check/check.h"
#include "shared/files/free_memory.h"
#include "shared/schedule/action_text.h"
#include "shared/text/json_form.h"
#include "sim/console/console.h"

namespace polyphony::sim {
namespace {

// Notes on scenarios that were read, until print_scenario_notes().
std::vector<std::string>& scenario_notes() {
  static std::vector<std::string> notes;
  return notes;
}

}  // namespace

Scenario open_scenario(const std::string& path, const std::vector<Override>& overrides,
                       const std::string& downloads, const std::string& phase) {
  Scenario scenario = read_scenario_file(path, overrides, phase);
  open_samples(scenario, downloads);
  return scenario;
}

Scenario open_scenario(const Arguments& args, const std::vector<Override>& overrides) {
  return open_scenario(args.require("scenario"), overrides, "", args.phase());
}

void open_samples(Scenario& scenario, const std::string& downloads) {
  read_samples(scenario, downloads);
  std::vector<std::string>& notes = scenario_notes();
  const auto add = [&](const std::string& note) {  // phases have many in common
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  };
  for (const std::string& note : scenario.notes) add(scenario.file + ": note: " + note);
  if (!scenario.data.remarks.empty()) add(scenario.data.remarks);
}

void print_scenario_notes() {
  for (const std::string& note : scenario_notes()) std::cerr << message_line(note);
  scenario_notes().clear();
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void apply_schedule(Scenario& scenario, const std::string& given) {
  if (given.empty()) return;
  if (!scenario.layout)
    throw InputError(scenario.file, "/layout", "is missing",
                     "--schedule replaces the schedule of a layout");
  Layout& layout = *scenario.layout;
  layout.actions.clear();
  const std::vector<std::string> names = enum_names(kLastSchedule);
  if (const std::string schedule = lower_case(given);
      std::find(names.begin(), names.end(), schedule) != names.end()) {
    layout.schedule = enum_named(schedule, kLastSchedule);
  } else if (!std::filesystem::exists(given)) {
    throw InputError(given, "", "is neither a schedule nor a file", suggest(given, names));
  } else {
    layout.actions = read_orders(read_records(given), given);
    int stages = 0;
    for (const Actions& actions : layout.actions)
      for (const Action& action : actions) stages = std::max(stages, action.stage + 1);
    ModuleLayout& language = layout.modules[language_module(scenario.model).value];
    const int vpp = std::max(1, stages / language.pp);
    for (ModuleLayout& grid : layout.modules)
      if (&grid == &language || layout.placement == Placement::homogeneous) grid.vpp = vpp;
  }
  if (const auto no = check_layout(scenario, layout))
    throw InputError(given, "", no->reason, "for the layout of " + scenario.file);
}

void require_memory(const Scenario& scenario, const Layout& layout, const NeedOptions& options) {
  if (const auto no = check_need(scenario, layout, options, free_memory()))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "", no->reason);
}

void print_notes(const Scenario& scenario, const std::vector<std::string>& notes) {
  for (const std::string& note : notes)
    std::cerr << message_line(scenario.file + ": note: " + note);
}

}  // namespace polyphony::sim
