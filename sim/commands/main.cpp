// polyphony: plan, predict, rehearse, run, compare and calibrate multimodal training.
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "shared/error.h"
#include "sim/commands/command.h"

namespace {

struct Verb {
  const char* name;
  int (*run)(int, char**);
  const char* summary;
};

constexpr Verb kVerbs[] = {
    {"plan", polyphony::sim::plan_command, "what a scenario's layout means: stages, ranks, layers"},
    {"simulate", polyphony::sim::simulate_command,
     "one step predicted: time, where it goes, memory"},
    {"sweep", polyphony::sim::sweep_command,
     "which layout? all legal ones screened, simulated, ranked"},
    {"profile", polyphony::sim::profile_command, "measure this machine"},
    {"run", polyphony::sim::run_command, "train for real on local ranks"},
    {"rehearse", polyphony::sim::rehearse_command, "play a schedule with paced ranks on few cores"},
    {"compare", polyphony::sim::compare_command, "predicted beside measured"},
    {"calibrate", polyphony::sim::calibrate_command, "fit the hardware profile to recorded runs"},
    {"report", polyphony::sim::report_command, "one HTML page of all of it"},
    {"validate", polyphony::sim::validate_command,
     "published measurements predicted, and how far off"},
    {"schedules", polyphony::sim::schedules_command,
     "an order of turns, yours or a schedule's: verified, simulated, drawn"},
    {"schema", polyphony::sim::schema_command, "the JSON Schema of scenario files"},
};

void print_usage(std::ostream& out) {
  out << "Rehearse a multimodal training run before paying for it, then play the same score for "
         "real.\n\n"
         "Usage: polyphony COMMAND ...     (polyphony COMMAND --help explains it with an "
         "example)\n\n";
  for (const Verb& verb : kVerbs)
    out << "  " << verb.name << std::string(12 - std::string(verb.name).size(), ' ') << verb.summary
        << "\n";
  out << "\nFirst: polyphony sweep scenarios/vlm_12b_70b_h100.json\n"
         "Exit codes: 0 done, 1 failed or interrupted, 2 bad input, 3 infeasible (does not fit, or "
         "cannot run here).\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command.empty() || command == "--help" || command == "-h" || command == "help") {
    print_usage(command.empty() ? std::cerr : std::cout);
    return command.empty() ? static_cast<int>(polyphony::ExitCode::bad_input) : 0;
  }
  std::signal(SIGXFSZ,
              SIG_IGN);  // a file over the size limit is then a write that fails, and is reported
  try {
    for (const Verb& verb : kVerbs) {
      if (command != verb.name) continue;
      const int code = verb.run(argc - 1, argv + 1);
      if (!std::cout.flush())
        throw polyphony::InputError("stdout", "", "cannot be written",
                                    "free some disk space, or write elsewhere");
      return code;
    }
    std::cerr << "polyphony: there is no command \"" << command
              << "\" (polyphony --help lists them)\n";
    return static_cast<int>(polyphony::ExitCode::bad_input);
  } catch (const polyphony::InputError& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(polyphony::ExitCode::bad_input);
  } catch (const std::exception& error) {
    std::cerr << "polyphony " << command << ": " << error.what() << "\n";
    return static_cast<int>(polyphony::ExitCode::failed);
  }
}
