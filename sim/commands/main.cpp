// polyphony: plan, predict, rehearse, run, compare and calibrate multimodal training.
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "shared/error.h"
#include "shared/files/whole.h"
#include "shared/text/json_form.h"
#include "shared/version.h"
#include "sim/cli/command.h"
#include "sim/commands/commands.h"
#include "sim/console/failure.h"
#include "sim/runner/allocator.h"

namespace {

struct Command {
  const char* name;
  int (*run)(int, char**);
  const char* summary;
};

constexpr Command kCommands[] = {
    {"ask", polyphony::sim::ask_command,
     "the best layout of a config.json on GPUs, without a scenario"},
    {"init", polyphony::sim::init_command, "write a scenario with comments, after a few questions"},
    {"import", polyphony::sim::import_command,
     "a scenario from another framework's launch script or log"},
    {"plan", polyphony::sim::plan_command,
     "check a layout; its stages, ranks and layers, why it is split so"},
    {"simulate", polyphony::sim::simulate_command,
     "predict one training step: time, where it goes, memory"},
    {"sweep", polyphony::sim::sweep_command, "search the legal layouts for the fastest"},
    {"why", polyphony::sim::why_command, "where a layout's time goes, and what to change"},
    {"profile", polyphony::sim::profile_command,
     "measure this machine; show, compare, merge and check profiles"},
    {"run", polyphony::sim::run_command, "train a scenario on ranks of this machine"},
    {"rehearse", polyphony::sim::rehearse_command,
     "run a scenario's ranks on a CPU, sleeping through the compute"},
    {"compare", polyphony::sim::compare_command, "recorded runs against their predictions"},
    {"replay", polyphony::sim::replay_command, "a recorded run with one thing changed"},
    {"calibrate", polyphony::sim::calibrate_command,
     "fit a hardware profile to runs, logs or step times"},
    {"watch", polyphony::sim::watch_command, "a running job against its prediction"},
    {"report", polyphony::sim::report_command, "runs, traces and a sweep on one HTML page"},
    {"validate", polyphony::sim::validate_command,
     "predict published measurements, and print the errors"},
    {"schedules", polyphony::sim::schedules_command,
     "verify, simulate, draw and compare pipeline schedules"},
    {"trace", polyphony::sim::trace_command, "where the time of PyTorch profiler traces goes"},
    {"scan", polyphony::sim::scan_command, "count the tokens of a data set on disk"},
    {"export", polyphony::sim::export_command,
     "a run's weights as a folder that transformers loads"},
    {"emit", polyphony::sim::emit_command, "a layout as another framework's launch files"},
    {"launch", polyphony::sim::launch_command, "a script that starts a run on a cluster"},
    {"schema", polyphony::sim::schema_command, "the JSON Schema of scenario files and answers"},
    {"completion", polyphony::sim::completion_command, "a script for completion in bash and zsh"},
};

void print_usage(std::ostream& out) {
  out << "Predicts, searches and runs parallel layouts of multimodal training.\n\n"
         "Usage: polyphony COMMAND ...     (polyphony COMMAND --help: options, examples)\n\n";
  for (const Command& known : kCommands)
    out << "  " << known.name << std::string(12 - std::string(known.name).size(), ' ')
        << known.summary << "\n";
  out << "\nFirst: polyphony ask --model llama-3.1-8b --gpus 8xH100\n"
         "Exit codes: 0 done, 1 failed or interrupted, 2 bad input,\n"
         "            3 infeasible (does not fit, or cannot run here)\n";
}

int answer(const std::string& command, int argc, char** argv) {
  if (command.empty()) {
    print_usage(std::cerr);
    return static_cast<int>(polyphony::ExitCode::bad_input);
  }
  if (command == "--help" || command == "-h" || command == "help") {
    print_usage(std::cout);
    return 0;
  }
  if (command == "--version" || command == "-V" || command == "version") {
    const polyphony::BuildInfo build = polyphony::build_info();
    std::cout << "polyphony " << build.version << " (commit " << build.commit << ", "
              << build.compiler << ", " << build.options << ")\n";
    return 0;
  }
  if (command == "--list-commands") {  // for completion
    for (const Command& known : kCommands) std::cout << known.name << "\n";
    return 0;
  }
  for (const Command& known : kCommands)
    if (command == known.name) return known.run(argc - 1, argv + 1);
  std::vector<std::string> names;
  for (const Command& known : kCommands) names.emplace_back(known.name);
  const std::string near = polyphony::nearest(command, names);
  if (command == "serve" || command == "mcp")
    throw polyphony::InputError("polyphony", "", command + " is in the Python package",
                                "pip install . and run its polyphony (sim/python/README.md)");
  throw polyphony::InputError(
      "polyphony", "", "there is no command \"" + command + "\"",
      near.empty() ? "polyphony --help lists the commands" : "did you mean \"" + near + "\"?");
}

// Reports a failure that is not about an input file.
int failed(const std::string& where, const std::string& what, const std::string& fix,
           polyphony::ExitCode code, bool json) {
  const polyphony::InputError error(where, "", what, fix);
  return polyphony::sim::report_failure(error, code, error.what(), json);
}

}  // namespace

int main(int argc, char** argv) {
  polyphony::sim::keep_freed_memory();
  // Writing past a file size limit then fails with an error that is reported.
  std::signal(SIGXFSZ, SIG_IGN);
  const std::string command = argc > 1 ? argv[1] : "";
  const bool json = polyphony::sim::wants_json(argc, argv);
  try {
    const int code = answer(command, argc, argv);
    std::cout.flush();
    polyphony::sim::print_scenario_notes();
    return polyphony::finish_stdout() ? code : static_cast<int>(polyphony::ExitCode::failed);
  } catch (const polyphony::sim::NoAnswer& error) {
    return polyphony::sim::report_failure(error, error.code, error.said ? "" : error.command_line(),
                                          json);
  } catch (const polyphony::InputError& error) {
    return polyphony::sim::report_failure(error, polyphony::ExitCode::bad_input,
                                          error.command_line(), json);
  } catch (const std::bad_alloc&) {
    std::string words = "polyphony";
    for (int i = 1; i < argc; ++i) words += std::string(" ") + argv[i];
    return failed(words, "memory ran out",
                  "ask for fewer microbatches, ranks or samples, fewer --jobs, or --estimate",
                  polyphony::ExitCode::infeasible, json);
  } catch (const std::exception& error) {
    return failed("polyphony " + command, error.what(), "", polyphony::ExitCode::failed, json);
  }
}
