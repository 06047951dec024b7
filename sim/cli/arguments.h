// The command line of one command of `polyphony`: its options, its help text, and the values given.
#pragma once

#include <cxxopts.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "sim/load/load.h"

namespace polyphony::sim {

// The arguments of one command. `usage` follows the command's name; `example` closes the help text.
// First options are added (add(), add_profile(), …), then parse() is called, then values are read.
class Arguments {
 public:
  Arguments(const std::string& command, const std::string& summary, const std::string& usage,
            const std::string& example);
  cxxopts::OptionAdder add() { return options_.add_options(); }
  // Adds options that work but are not listed: earlier names.
  cxxopts::OptionAdder add_hidden() { return options_.add_options(kHidden); }
  void positional(const std::vector<std::string>& names) {
    positional_ = names;
    options_.parse_positional(names);
  }
  // Reads the arguments; argv[0] is the command's name. Returns false if the command shall run.
  // Returns true if --help, or the list of options for completion, was asked for: it has been
  // printed on stdout, no value may be read, and the command returns 0. Throws InputError for an
  // unknown option, a malformed value, an argument too many, or a --format that the command does
  // not have.
  bool parse(int argc, char** argv);

  bool has(const std::string& name) const { return result_->count(name) > 0; }
  std::string text(const std::string& name) const;  // empty: not given, and without a default
  int integer(const std::string& name) const { return (*result_)[name].as<int>(); }
  // An option's value as it was typed.
  std::string given(const std::string& name) const { return repeated(name).back(); }
  double real(const std::string& name) const { return (*result_)[name].as<double>(); }
  std::vector<std::string> texts(const std::string& name) const;       // cut at commas
  std::vector<std::string> repeated(const std::string& name) const;    // as given, commas and all
  void add_profile(const std::string& what_for = "hardware profile");  // --profile, --stack
  ProfileChoice profile() const { return {text("profile"), text("stack")}; }
  void add_schedule();                              // --schedule, for apply_schedule()
  void add_csv() { formats_.emplace_back("csv"); }  // --format csv; before parse()
  void add_overrides();                             // --set, repeatable
  void add_phase();                                 // --phase, of commands that take a scenario
  std::string phase() const { return has("phase") ? text("phase") : ""; }
  std::vector<Override> overrides() const;             // as given, commas and all
  std::string require(const std::string& name) const;  // InputError when it was left out
  // Throws InputError if a file that one of these options names cannot be written: before the
  // answer is worked out, not after it.
  void check_outputs(std::initializer_list<const char*> names) const;
  bool json() const { return text("format") == "json"; }
  bool csv() const { return text("format") == "csv"; }
  int jobs() const;  // --jobs, else the number of cores

 private:
  static constexpr const char* kHidden = "hidden";

  std::vector<std::string> option_names() const;  // without "--", those that are listed

  std::string command_, example_;
  std::vector<std::string> formats_{"table", "json"}, positional_;
  cxxopts::Options options_;
  std::optional<cxxopts::ParseResult> result_;
};

// Returns the number of cores of this machine.
int cores_here();

}  // namespace polyphony::sim
