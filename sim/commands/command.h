// The verbs of `polyphony`: one function each, in a file of its name; sim/commands/main.cpp picks one.
// Results go to stdout, talk to stderr. Each parses its own arguments (cxxopts), answers --help
// with an example, and takes --format table|json.
#pragma once

#include <cxxopts.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "shared/error.h"
#include "shared/hardware/hardware.h"
#include "shared/scenario/overrides_json.h"
#include "shared/scenario/scenario.h"

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
int schema_command(int argc, char** argv);

// Arguments of one command. `usage` follows the command's name; `example` closes the help text.
class Arguments {
 public:
  Arguments(const std::string& command, const std::string& summary, const std::string& usage,
            const std::string& example);
  cxxopts::OptionAdder add() { return options_.add_options(); }
  void positional(std::vector<std::string> names) { options_.parse_positional(std::move(names)); }
  // True: help was asked for and printed. Unknown or malformed options: InputError.
  bool parse(int argc, char** argv);

  bool has(const std::string& name) const { return result_->count(name) > 0; }
  std::string text(const std::string& name) const { return (*result_)[name].as<std::string>(); }
  int integer(const std::string& name) const { return (*result_)[name].as<int>(); }
  double real(const std::string& name) const { return (*result_)[name].as<double>(); }
  std::vector<std::string> texts(const std::string& name) const;  // cut at commas
  void add_overrides();                                           // --set, repeatable
  void add_schedule();                                 // --schedule, for apply_schedule()
  std::vector<Override> overrides() const;             // as given, commas and all
  std::string require(const std::string& name) const;  // InputError when it was left out
  bool json() const;                                   // --format json
  int jobs() const;                                    // --jobs, else the number of cores

 private:
  std::string command_, example_;
  cxxopts::Options options_;
  std::optional<cxxopts::ParseResult> result_;
};

// Overrides of "profile." are left for load_profile().
Scenario load_scenario(const std::string& path, const std::vector<Override>& overrides = {});
// The layout's order of turns: a schedule's name, or a file (shared/schedule/turn_text.h), which also
// says how many virtual stages there are. InputError when it is neither, or not legal. Empty: as the
// layout has it.
void apply_schedule(Scenario& scenario, const std::string& given);
// Says on stderr when a prediction for this machine has more ranks than cores: that is not
// modelled.
void note_shared_cores(const Scenario& scenario);
// A shipped name or a file; empty: the scenario's own, else that of its device.
HardwareProfile load_profile(const Scenario& scenario, const std::string& name,
                             const std::vector<Override>& overrides = {});
// The scenario's layout, checked. InputError when there is none or it is illegal.
const Layout& require_layout(const Scenario& scenario);

}  // namespace polyphony::sim
