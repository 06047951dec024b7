// The verbs of `polyphony`: one function each, in a file of its name; sim/commands/main.cpp picks one.
// Results go to stdout, talk to stderr; a command without an answer throws, and main says it
// (sim/console/failure.h). Each parses its own arguments (cxxopts), answers --help
// with an example, and takes --format table|json, and csv where it says so.
#pragma once

#include <cxxopts.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "shared/error.h"
#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"
#include "shared/scenario_io/overrides_json.h"
#include "sim/console/failure.h"
#include "sim/prediction/need.h"

namespace polyphony::sim {

int plan_command(int argc, char** argv);
int simulate_command(int argc, char** argv);
int sweep_command(int argc, char** argv);
int profile_command(int argc, char** argv);
int run_command(int argc, char** argv);
int rehearse_command(int argc, char** argv);
int compare_command(int argc, char** argv);
int calibrate_command(int argc, char** argv);
int report_command(int argc, char** argv);
int validate_command(int argc, char** argv);
int schedules_command(int argc, char** argv);
int scan_command(int argc, char** argv);
int trace_command(int argc, char** argv);
int schema_command(int argc, char** argv);
int why_command(int argc, char** argv);

// What the command line says of a prediction's profile and stack; empty: the scenario's.
struct ProfileChoice {
  std::string profile, stack;
};

// Arguments of one command. `usage` follows the command's name; `example` closes the help text.
class Arguments {
 public:
  Arguments(const std::string& command, const std::string& summary, const std::string& usage,
            const std::string& example);
  cxxopts::OptionAdder add() { return options_.add_options(); }
  void positional(const std::vector<std::string>& names) {
    positional_ = names;
    options_.parse_positional(names);
  }
  // True: help was asked for and printed. Unknown or malformed options: InputError.
  bool parse(int argc, char** argv);

  bool has(const std::string& name) const { return result_->count(name) > 0; }
  std::string text(const std::string& name) const { return (*result_)[name].as<std::string>(); }
  int integer(const std::string& name) const { return (*result_)[name].as<int>(); }
  double real(const std::string& name) const { return (*result_)[name].as<double>(); }
  std::vector<std::string> texts(const std::string& name) const;       // cut at commas
  std::vector<std::string> repeated(const std::string& name) const;    // as given, commas and all
  void add_profile(const std::string& what_for = "hardware profile");  // --profile, --stack
  ProfileChoice profile() const { return {text("profile"), text("stack")}; }
  void add_schedule();                                 // --schedule, for apply_schedule()
  void add_csv() { formats_.emplace_back("csv"); }     // --format csv; before parse()
  void add_overrides();                                // --set, repeatable
  std::vector<Override> overrides() const;             // as given, commas and all
  std::string require(const std::string& name) const;  // InputError when it was left out
  bool json() const { return text("format") == "json"; }
  bool csv() const { return text("format") == "csv"; }
  int jobs() const;  // --jobs, else the number of cores

 private:
  std::string command_, example_;
  std::vector<std::string> formats_{"table", "json"}, positional_;
  cxxopts::Options options_;
  std::optional<cxxopts::ParseResult> result_;
};

// Without the samples of its data set. Overrides of "profile." are left for load_profile().
Scenario read_scenario_file(const std::string& path, const std::vector<Override>& overrides = {});
// The samples of its data set. `downloads`: folder of downloaded ones; empty: the set-up cache.
void read_samples(Scenario& scenario, const std::string& downloads = "");
// Both, and its notes on stderr.
Scenario load_scenario(const std::string& path, const std::vector<Override>& overrides = {},
                       const std::string& downloads = "");
// The layout's order of actions: a schedule's name, or a file (shared/schedule/action_text.h), which also
// says how many virtual stages there are. InputError when it is neither, or not legal. Empty: as the
// layout has it.
void apply_schedule(Scenario& scenario, const std::string& given);
// Of this machine.
int cores_here();
// NoAnswer where this machine has no memory for it.
void require_memory(const Scenario& scenario, const Layout& layout, const NeedOptions& options);
// What an answer says of itself, on stderr.
void print_notes(const Scenario& scenario, const std::vector<std::string>& notes);
// As shared/scenario_io/scenario_profile.h, with the overrides of "profile.".
HardwareProfile load_profile(const Scenario& scenario, const ProfileChoice& choice,
                             const std::vector<Override>& overrides = {});

}  // namespace polyphony::sim
