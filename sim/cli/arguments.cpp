#include "sim/cli/arguments.h"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <thread>

#include "shared/files/whole.h"
#include "shared/hardware/software.h"
#include "shared/text/json_form.h"
#include "sim/console/console.h"

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

// Wraps each line of a command's summary to the screen. Lines that are indented, or that explain a
// word which stands before two spaces, go on below their own text.
std::string preamble(const std::string& summary) {
  std::istringstream lines(summary);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t gap = line.find("  ", indent);
    const std::size_t hang =
        gap == std::string::npos ? indent : std::min(line.find_first_not_of(' ', gap), line.size());
    const std::size_t columns = screen_columns();
    std::string rest = wrapped(line.substr(hang), columns > hang ? columns - hang : 1);
    for (std::size_t at = rest.find('\n'); at != std::string::npos;
         at = rest.find('\n', at + 1 + hang))
      rest.insert(at + 1, hang, ' ');
    text += (text.empty() ? "" : "\n") + line.substr(0, hang) + rest;
  }
  return text;
}

}  // namespace

Arguments::Arguments(const std::string& command, const std::string& summary,
                     const std::string& usage, const std::string& example)
    : command_(command), example_(example), options_("polyphony " + command, preamble(summary)) {
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
    std::cout << options_.help({""}) << "\nExamples\n" << example_ << "\n";
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
  for (const std::string& group : options_.groups()) {
    if (group == kHidden) continue;
    for (const auto& option : options_.group_help(group).options)
      for (const std::string& name : option.l)
        if (std::find(positional_.begin(), positional_.end(), name) == positional_.end())
          names.push_back(name);
  }
  return names;
}

std::string Arguments::text(const std::string& name) const {
  const auto& value = (*result_)[name];
  return value.count() > 0 || value.has_default() ? value.as<std::string>() : "";
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
        cxxopts::value<std::string>())(
      "stack",
      "software stack to predict for: one of " + joined(stack_names()) +
          "; default: the scenario's training.software, else the profile's",
      cxxopts::value<std::string>());
}

void Arguments::add_overrides() {
  add()("set",
        "what if: change a value of the scenario, or of its profile "
        "(profile.gemm_efficiency=0.6), and compare; repeatable",
        cxxopts::value<std::vector<std::string>>(), "PATH=VALUE");
}

void Arguments::add_phase() {
  add()("phase", "phase of a scenario with phases", cxxopts::value<std::string>(), "NAME");
}

void Arguments::add_schedule() {
  add()("schedule", "replaces the layout's schedule: a schedule's name, or a file of actions",
        cxxopts::value<std::string>(), "ORDER");
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

int cores_here() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

}  // namespace polyphony::sim
