// polyphony rehearse: runs the schedule with real messages and emulated compute (a rank sleeps
// until the op would have ended), so that few cores show the bubbles of many ranks.
#include <iostream>
#include <thread>

#include "shared/check/check.h"
#include "shared/hardware/hardware_json.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/measurements.h"
#include "sim/cli/worker_options.h"
#include "sim/console/console.h"
#include "sim/shown_runs/comparison_table.h"
#include "traces/evidence/run_folder.h"

namespace polyphony::sim {

int rehearse_command(int argc, char** argv) {
  Arguments args(
      "rehearse",
      "Runs a layout's schedule on this machine with emulated compute: a rank sleeps until the op "
      "would have ended on the profile's device, messages are real.\n"
      "4 to 64 ranks on a laptop then show the order of actions and the idle time of a real run. "
      "Compares prediction and measurement.",
      "SCENARIO",
      "  polyphony rehearse scenarios/rehearse_8.json --profile machine.json --out runs/rehearsal");
  args.add()("scenario", "scenario file with a layout", cxxopts::value<std::string>())(
      "scale",
      "how many times slower than in the profile compute ops run; 0: as slow as the cores need",
      cxxopts::value<double>()->default_value("0"))("steps",
                                                    "steps to run; the first three are dropped",
                                                    cxxopts::value<int>()->default_value("10"))(
      "out", "folder of the run; an earlier rehearsal in runs/rehearsal is replaced",
      cxxopts::value<std::string>()->default_value("runs/rehearsal"))(
      "fresh", "remove an earlier run in --out first");
  add_bar(args);
  args.add_profile("hardware profile of this machine");
  args.add_schedule();
  args.add_phase();
  add_planning_options(args);
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  Scenario scenario = open_scenario(args);
  apply_schedule(scenario, args.text("schedule"));
  const Layout& layout = require_layout(scenario);
  if (const auto no = check_runnable(scenario, layout))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "/layout", no->reason,
                   "polyphony simulate predicts it");
  if (args.integer("steps") < 4)
    throw InputError("--steps", "", "must be at least 4", "the first three are dropped as warm-up");
  PaceModel pace{load_profile(scenario, args.profile()), args.real("scale")};
  // Three times the ranks per core: the real compute then uses at most a third of the cores and
  // rarely waits for one.
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (pace.scale <= 0) pace.scale = std::max(2.0, 3.0 * world_size(layout) / cores);
  const std::string folder = args.text("out");
  const EarlierRun earlier =
      args.has("fresh") || !args.has("out") ? EarlierRun::remove : EarlierRun::refuse;
  RunFolder claim(folder, earlier, "polyphony rehearse");
  if (!claim.note().empty()) std::cerr << "rehearse: " << claim.note() << "\n";
  claim.begin();
  const std::string resolved = give_scenario(scenario, layout, pace.profile, claim);
  write_file(claim.paths().pace(), traces::pace_text(pace));
  write_file(claim.paths().pace_profile(), to_json(pace.profile) + "\n");
  const std::string steps = std::to_string(args.integer("steps"));
  LaunchOptions options;
  options.command.ranks = world_size(layout);
  options.command.folder_lock = claim.lock();
  options.command.arguments = {resolved,
                               "--out",
                               folder,
                               "--steps",
                               steps,
                               "--trace-steps",
                               "3:" + steps,
                               "--checkpoint-every",
                               "0",
                               "--device",
                               "cpu",
                               "--pace",
                               claim.paths().pace_profile(),
                               "--pace-scale",
                               std::to_string(pace.scale)};
  add_planning_arguments(args, options.command.arguments);
  const LaunchResult result =
      launch_with_progress(options, "rehearse", folder, args.integer("steps"));
  if (result.interrupted || result.exit_code != 0) throw no_answer(result, "rehearse");
  const std::vector<RunComparison> rows{
      compare_run(traces::read_run_folder(folder, disk_files()), pace.profile)};
  if (args.json())
    std::cout << to_json(rows, args.real("bar")).dump(2) << "\n";
  else
    std::cout << "compute emulated at " << number_text(pace.scale, 1)
              << " times the profile's time, on " << cores << " cores\n\n"
              << comparison_text(rows, args.real("bar"));
  return 0;
}

}  // namespace polyphony::sim
