// The commands of `polyphony`: one function each, in a file of its name; sim/commands/main.cpp
// picks one. Results go to stdout, progress and notes to stderr. A command without an answer
// throws, and main prints why (sim/console/failure.h). Each command parses its own arguments
// (cxxopts), answers --help with examples, and takes --format table or json, some also csv.
#pragma once

#include <cxxopts.hpp>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "shared/error.h"
#include "sim/console/failure.h"
#include "sim/load/load.h"
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
int completion_command(int argc, char** argv);

// The arguments of one command. `usage` follows the command's name; `example` closes the help text.
class Arguments {
 public:
  Arguments(const std::string& command, const std::string& summary, const std::string& usage,
            const std::string& example);
  cxxopts::OptionAdder add() { return options_.add_options(); }
  void positional(const std::vector<std::string>& names) {
    positional_ = names;
    options_.parse_positional(names);
  }
  // Returns true if help, or the list of options for completion, was asked for and printed. Throws
  // InputError for unknown or malformed options.
  bool parse(int argc, char** argv);

  bool has(const std::string& name) const { return result_->count(name) > 0; }
  std::string text(const std::string& name) const { return (*result_)[name].as<std::string>(); }
  int integer(const std::string& name) const { return (*result_)[name].as<int>(); }
  // An option's value as it was typed.
  std::string given(const std::string& name) const { return repeated(name).back(); }
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
  // Throws InputError if a file that one of these options names cannot be written: before the
  // answer is worked out, not after it.
  void check_outputs(std::initializer_list<const char*> names) const;
  bool json() const { return text("format") == "json"; }
  bool csv() const { return text("format") == "csv"; }
  int jobs() const;  // --jobs, else the number of cores

 private:
  std::vector<std::string> option_names() const;  // without "--"

  std::string command_, example_;
  std::vector<std::string> formats_{"table", "json"}, positional_;
  cxxopts::Options options_;
  std::optional<cxxopts::ParseResult> result_;
};

// Loads a scenario (sim/load/load.h). Its notes (how modules differ from published models) wait for
// print_scenario_notes().
Scenario open_scenario(const std::string& path, const std::vector<Override>& overrides = {},
                       const std::string& downloads = "");
// Prints these notes on stderr, once: main calls it after a command's result.
void print_scenario_notes();
std::string lower_case(std::string text);
// Sets the layout's schedule by name (upper and lower case alike), or its actions from a file
// (shared/schedule/action_text.h), which also gives the number of virtual stages. Leaves the layout
// alone where `given` is empty. Throws InputError if it is neither, or not legal for the layout.
void apply_schedule(Scenario& scenario, const std::string& given);
// Cores of this machine.
int cores_here();
// Throws NoAnswer if this machine has too little memory to predict the layout.
void require_memory(const Scenario& scenario, const Layout& layout, const NeedOptions& options);
// Prints notes on an answer on stderr.
void print_notes(const Scenario& scenario, const std::vector<std::string>& notes);

}  // namespace polyphony::sim
