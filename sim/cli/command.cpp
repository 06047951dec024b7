#include "sim/cli/command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <thread>

#include "shared/check/check.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/software.h"
#include "shared/schedule/action_text.h"
#include "shared/text/json_form.h"
#include "sim/console/console.h"
#include "sim/console/free_memory.h"

namespace polyphony::sim {
namespace {

// "‘abc’" of cxxopts' messages: abc.
std::string quoted(const std::string& message) {
  const std::string open = "\u2018", close = "\u2019";
  const std::size_t from = message.find(open), to = message.find(close);
  if (from == std::string::npos || to == std::string::npos) return "";
  return message.substr(from + open.size(), to - from - open.size());
}

// The option that this value was given to: cxxopts names the value alone.
std::string option_of(const std::string& value, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == value && std::string(argv[i - 1]).starts_with("--")) return argv[i - 1];
    if (word.starts_with("--") && word.ends_with("=" + value))
      return word.substr(0, word.size() - value.size() - 1);
  }
  return "";
}

// Notes on scenarios that were read, until print_scenario_notes().
std::vector<std::string>& scenario_notes() {
  static std::vector<std::string> notes;
  return notes;
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
  if (argc == 2 && std::string(argv[1]) == "--list-options") {
    for (const std::string& name : option_names()) std::cout << "--" << name << "\n";
    return true;
  }
  try {
    result_ = options_.parse(argc, argv);
  } catch (const cxxopts::exceptions::incorrect_argument_type& error) {
    const std::string value = quoted(error.what()), option = option_of(value, argc, argv);
    throw InputError(option.empty() ? "polyphony " + command_ : option, "",
                     "\"" + value + "\" is not a number",
                     "polyphony " + command_ + " --help lists the options");
  } catch (const cxxopts::exceptions::no_such_option& error) {
    const std::string given = quoted(error.what()), near = nearest(given, option_names());
    throw InputError("polyphony " + command_, "", "has no option --" + given,
                     near.empty() ? "polyphony " + command_ + " --help lists the options"
                                  : "did you mean --" + near + "?");
  } catch (const cxxopts::exceptions::exception& error) {
    throw InputError("polyphony " + command_, "", error.what(),
                     "polyphony " + command_ + " --help lists the options");
  }
  if (has("help")) {
    std::cout << options_.help() << "\nExamples\n" << example_ << "\n";
    return true;
  }
  if (!result_->unmatched().empty())
    throw InputError("polyphony " + command_, "",
                     "takes no argument \"" + result_->unmatched().front() + "\"",
                     "polyphony " + command_ + " --help lists the arguments");
  const std::string format = text("format");
  if (std::find(formats_.begin(), formats_.end(), format) == formats_.end())
    throw InputError("--format", "", "\"" + format + "\" is not a format", joined(formats_));
  return false;
}

std::vector<std::string> Arguments::option_names() const {
  std::vector<std::string> names;
  for (const std::string& group : options_.groups())
    for (const auto& option : options_.group_help(group).options)
      for (const std::string& name : option.l)
        if (std::find(positional_.begin(), positional_.end(), name) == positional_.end())
          names.push_back(name);
  return names;
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

void Arguments::check_outputs(std::initializer_list<const char*> names) const {
  for (const char* name : names)
    if (has(name)) check_writable(text(name));
}

void Arguments::add_profile(const std::string& what_for) {
  add()("profile", what_for + ": a shipped name or a file; default: the scenario's",
        cxxopts::value<std::string>()->default_value(""))(
      "stack",
      "software stack to predict for: one of " + joined(stack_names()) +
          "; default: the scenario's training.software, else the profile's",
      cxxopts::value<std::string>()->default_value(""));
}

void Arguments::add_overrides() {
  add()("set",
        "what if: change a value of the scenario, or of its profile "
        "(profile.gemm_efficiency=0.6), and compare; repeatable",
        cxxopts::value<std::vector<std::string>>(), "PATH=VALUE");
}

void Arguments::add_schedule() {
  add()("schedule", "replaces the layout's schedule: a schedule's name, or a file of actions",
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
    throw InputError(
        "--jobs", "",
        "must be at least 1, or 0 for one per core (got " + std::to_string(asked) + ")",
        "leave it out for one thread per core");
  return asked > 0 ? asked : cores_here();
}

Scenario open_scenario(const std::string& path, const std::vector<Override>& overrides,
                       const std::string& downloads) {
  Scenario scenario = load_scenario(path, overrides, downloads);
  for (const std::string& note : scenario.notes)
    scenario_notes().push_back(scenario.file + ": note: " + note);
  return scenario;
}

void print_scenario_notes() {
  for (const std::string& note : scenario_notes()) std::cerr << note << "\n";
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

int cores_here() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

void require_memory(const Scenario& scenario, const Layout& layout, const NeedOptions& options) {
  if (const auto no = check_need(scenario, layout, options, free_memory()))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "", no->reason);
}

void print_notes(const Scenario& scenario, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::cerr << scenario.file << ": note: " << note << "\n";
}

}  // namespace polyphony::sim
