// polyphony: plan, predict, rehearse, run, compare and calibrate multimodal training.
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "shared/error.h"
#include "shared/files/whole.h"
#include "sim/cli/command.h"
#include "sim/commands/replay.h"
#include "sim/commands/watch.h"
#include "sim/console/failure.h"
#include "sim/runner/allocator.h"

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
    {"why", polyphony::sim::why_command, "where a layout's time goes, and what to change"},
    {"profile", polyphony::sim::profile_command,
     "measure this machine; show, compare, merge and check profiles"},
    {"run", polyphony::sim::run_command, "train for real on local ranks"},
    {"rehearse", polyphony::sim::rehearse_command, "play a schedule with paced ranks on few cores"},
    {"compare", polyphony::sim::compare_command, "predicted beside measured"},
    {"replay", polyphony::sim::replay_command,
     "a recorded run played again with one thing changed"},
    {"calibrate", polyphony::sim::calibrate_command,
     "fit the hardware profile to runs, logs, step times"},
    {"watch", polyphony::sim::watch_command, "a running job beside its prediction"},
    {"report", polyphony::sim::report_command, "one HTML page of all of it"},
    {"validate", polyphony::sim::validate_command,
     "published measurements predicted, and how far off"},
    {"schedules", polyphony::sim::schedules_command,
     "an order of actions, yours or a schedule's: verified, simulated, drawn"},
    {"trace", polyphony::sim::trace_command, "where the time of a profiler's traces goes"},
    {"scan", polyphony::sim::scan_command, "a data set on disk counted, sample by sample"},
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

int answer(const std::string& command, int argc, char** argv) {
  if (command.empty()) {
    print_usage(std::cerr);
    return static_cast<int>(polyphony::ExitCode::bad_input);
  }
  if (command == "--help" || command == "-h" || command == "help") {
    print_usage(std::cout);
    return 0;
  }
  for (const Verb& verb : kVerbs)
    if (command == verb.name) return verb.run(argc - 1, argv + 1);
  throw polyphony::InputError("polyphony", "", "there is no command \"" + command + "\"",
                              "polyphony --help lists them");
}

// What went wrong in a command, without a file that it is about.
int failed(const std::string& where, const std::string& what, const std::string& fix,
           polyphony::ExitCode code, bool json) {
  const polyphony::InputError error(where, "", what, fix);
  return polyphony::sim::report_failure(error, code, error.what(), json);
}

}  // namespace

int main(int argc, char** argv) {
  polyphony::sim::keep_freed_memory();
  // A file over the size limit is then a write that fails, and is reported.
  std::signal(SIGXFSZ, SIG_IGN);
  const std::string command = argc > 1 ? argv[1] : "";
  const bool json = polyphony::sim::wants_json(argc, argv);
  try {
    const int code = answer(command, argc, argv);
    return polyphony::finish_stdout() ? code : static_cast<int>(polyphony::ExitCode::failed);
  } catch (const polyphony::sim::NoAnswer& error) {
    return polyphony::sim::report_failure(error, error.code, error.said ? "" : error.what(), json);
  } catch (const polyphony::InputError& error) {
    return polyphony::sim::report_failure(error, polyphony::ExitCode::bad_input, error.what(),
                                          json);
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
