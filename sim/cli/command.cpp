#include "sim/cli/command.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "shared/hardware/devices.h"
#include "shared/hardware/software.h"
#include "shared/plan/plan.h"
#include "shared/program/data_set.h"
#include "shared/scenario_io/easy_vqa.h"
#include "shared/scenario_io/scenario_profile.h"
#include "shared/schedule/action_text.h"
#include "shared/text/json_form.h"
#include "sim/cli/profile_overrides.h"
#include "sim/console/console.h"
#include "sim/console/free_memory.h"

namespace polyphony::sim {
namespace {

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace

Arguments::Arguments(const std::string& command, const std::string& summary,
                     const std::string& usage, const std::string& example)
    : command_(command), example_(example), options_("polyphony " + command, summary) {
  options_.custom_help("[OPTION...]").positional_help(usage);
  options_.add_options()("h,help", "this text");
}

bool Arguments::parse(int argc, char** argv) {
  options_.add_options()(
      "format", joined(formats_) + "; with json, errors are JSON too (polyphony schema error)",
      cxxopts::value<std::string>()->default_value(formats_.front()));
  try {
    result_ = options_.parse(argc, argv);
  } catch (const cxxopts::exceptions::exception& error) {
    throw InputError("polyphony " + command_, "", error.what(),
                     "polyphony " + command_ + " --help lists the options");
  }
  if (has("help")) {
    std::cout << options_.help() << "\nExample\n" << example_ << "\n";
    return true;
  }
  if (!result_->unmatched().empty())
    throw InputError("polyphony " + command_, "",
                     "does not know what to do with \"" + result_->unmatched().front() + "\"",
                     "polyphony " + command_ + " --help lists the arguments");
  const std::string format = text("format");
  if (std::find(formats_.begin(), formats_.end(), format) == formats_.end())
    throw InputError("--format", "", "\"" + format + "\" is not a format", joined(formats_));
  return false;
}

std::vector<std::string> Arguments::texts(const std::string& name) const {
  return has(name) ? (*result_)[name].as<std::vector<std::string>>() : std::vector<std::string>{};
}

std::string Arguments::require(const std::string& name) const {
  const bool option = std::find(positional_.begin(), positional_.end(), name) == positional_.end();
  if (!has(name))
    throw InputError("polyphony " + command_, "", "needs " + (option ? "--" + name : name),
                     "polyphony " + command_ + " --help shows an example");
  return text(name);
}

void Arguments::add_profile(const std::string& what_for) {
  add()("profile", what_for + ": a shipped name or a file; default: the scenario's",
        cxxopts::value<std::string>()->default_value(""))(
      "stack",
      "software stack in place of the profile's; default: training.software where it is one of " +
          joined(stack_names()),
      cxxopts::value<std::string>()->default_value(""));
}

void Arguments::add_overrides() {
  add()("set",
        "what if: PATH=VALUE in place of a value of the scenario, or of its profile "
        "(profile.gemm_efficiency=0.6); repeatable",
        cxxopts::value<std::vector<std::string>>(), "PATH=VALUE");
}

void Arguments::add_schedule() {
  add()("schedule", "in place of the layout's: a schedule's name, or a file of actions",
        cxxopts::value<std::string>()->default_value(""), "ORDER");
}

std::vector<std::string> Arguments::repeated(const std::string& name) const {
  std::vector<std::string> all;
  for (const cxxopts::KeyValue& given : result_->arguments())
    if (given.key() == name) all.push_back(given.value());
  return all;
}

std::vector<Override> Arguments::overrides() const {
  std::vector<Override> all;
  for (const std::string& given : repeated("set")) all.push_back(parse_override(given));
  return all;
}

int Arguments::jobs() const {
  const int asked = integer("jobs");
  if (asked < 0)
    throw InputError("--jobs", "", std::to_string(asked) + " worker processes cannot be",
                     "a number from 1 on; 0: one per core");
  return asked > 0 ? asked : cores_here();
}

Scenario read_scenario_file(const std::string& path, const std::vector<Override>& overrides) {
  std::vector<Override> own;
  for (const Override& override : overrides)
    if (!of_profile(override)) own.push_back(override);
  return read_scenario(read_file(path), path, read_file, own);
}

void read_samples(Scenario& scenario, const std::string& downloads) {
  load_samples(scenario, downloads.empty() ? download_folder(environment_variable) : downloads,
               read_records);
}

Scenario load_scenario(const std::string& path, const std::vector<Override>& overrides,
                       const std::string& downloads) {
  Scenario scenario = read_scenario_file(path, overrides);
  read_samples(scenario, downloads);
  print_notes(scenario, scenario.notes);
  return scenario;
}

void apply_schedule(Scenario& scenario, const std::string& given) {
  if (given.empty()) return;
  if (!scenario.layout)
    throw InputError(scenario.file, "/layout", "is missing", "an order of actions is a layout's");
  Layout& layout = *scenario.layout;
  layout.actions.clear();
  const std::vector<std::string> names = enum_names(kLastSchedule);
  if (std::find(names.begin(), names.end(), given) != names.end()) {
    layout.schedule = enum_named(given, kLastSchedule);
  } else if (!std::filesystem::exists(given)) {
    throw InputError(given, "", "is no schedule and no file", "schedules are " + joined(names));
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

int cores_here() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

void require_memory(const Scenario& scenario, const Layout& layout, const NeedOptions& options) {
  if (const auto no = check_need(scenario, layout, options, free_memory()))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "", no->reason);
}

void print_notes(const Scenario& scenario, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::cerr << scenario.file << ": note: " << note << "\n";
}

HardwareProfile load_profile(const Scenario& scenario, const ProfileChoice& choice,
                             const std::vector<Override>& overrides) {
  return overridden(scenario_profile(scenario, read_file, choice.profile, choice.stack), overrides);
}

}  // namespace polyphony::sim
