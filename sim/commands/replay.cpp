// polyphony replay: replays a recorded run, also with something changed.
#include "sim/commands/replay.h"

#include <iostream>

#include "shared/text/number_text.h"
#include "sim/cli/command.h"
#include "sim/cli/execution_trace.h"
#include "sim/cli/measurements.h"
#include "sim/cli/variations.h"
#include "sim/console/console.h"
#include "sim/load/profile_overrides.h"
#include "sim/replay/changed_run.h"
#include "sim/replay/replay_json.h"
#include "sim/shown_runs/replay_text.h"

namespace polyphony::sim {

traces::Speedup parse_speedup(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::optional<double> factor =
      number_of(equals == std::string::npos ? "" : text.substr(equals + 1));
  if (equals == 0 || !factor || !(*factor > 0))
    throw InputError("--faster " + text, "", "is not of the form CLASS=TIMES with TIMES above 0",
                     "such as --faster \"language backward=1.3\"; 0.5 is half as fast");
  return {text.substr(0, equals), *factor};
}

namespace {

// A profile that is fitted to the run scales its ops more accurately than a shipped one.
RunProfiles profiles_for(const Arguments& args, const traces::Measurement& measured) {
  if (measured.pace && args.has("profile") && !args.text("profile").empty())
    throw InputError(
        "--profile", "",
        "does not apply: " + measured.source + " is a rehearsal with a profile of its own",
        "leave it out: compute ops take the time of the rehearsal's profile");
  return measured.pace ? run_profiles(measured, {})
                       : run_profiles(measured, load_profile(measured.scenario, args.profile()));
}

ReplayAnswer ask(const Arguments& args, const traces::Measurement& measured,
                 const RunProfiles& profiles, const std::vector<Override>& given) {
  std::optional<Scenario> scenario;
  if (!given.empty()) scenario = changed_scenario(measured, given);
  const bool moved = scenario && changes_device(measured, *scenario);
  ReplayChange change;
  change.profile = moved ? load_profile(*scenario, args.profile()) : profiles.fitted;
  if (scenario) {
    require_memory(
        *scenario, *scenario->layout,
        {.predictor = Predictor::estimate, .copies = static_cast<int>(measured.steps.size())});
    change.profile = overridden(change.profile, given);
  }
  change.scenario = std::move(scenario);
  for (const Override& override : given) change.said.push_back(override.text);
  for (const std::string& text : args.repeated("faster")) {
    change.faster.push_back(parse_speedup(text));
    change.said.push_back(text + " as fast");
  }
  auto outcome = replay(measured, moved ? profiles.prior : profiles.fitted, change);
  if (const auto* no = std::get_if<Infeasible>(&outcome))
    throw NoAnswer(ExitCode::infeasible, measured.scenario_file, "", no->reason);
  ReplayAnswer answer = std::get<ReplayAnswer>(std::move(outcome));
  if (moved)
    answer.notes.push_back(
        "another device: its profile is compared with that of the measured device, neither fitted "
        "to "
        "the run");
  return answer;
}

}  // namespace

int replay_command(int argc, char** argv) {
  Arguments args(
      "replay",
      "Replays a recorded run with its measured times, and again with something changed.\n"
      "An op that the change does not touch keeps its measured time. An op whose size or device "
      "changes is scaled by the cost model's ratio, fitted to the run. An op that the run never "
      "ran "
      "takes the model's time. When each op starts is computed again.\n"
      "Or replays traces of PyTorch's profiler, of all ranks or of a few: their kernels with what "
      "each had to wait for (traces/kernels/kernel_graph.h), and again with links, a rank, a class "
      "of "
      "kernels or a group changed. Changes of schedule, microbatches or placement are refused: a "
      "profiler's trace has no model.",
      "RUN | TRACE...",
      "  polyphony run scenarios/easy_vqa.json --out runs/a --steps 20 --trace-steps 8:20\n"
      "  polyphony replay runs/a                                     does the replay reproduce it? "
      "Its critical path\n"
      "  polyphony replay runs/a --set cluster.node.link=200MBps     a slower link\n"
      "  polyphony replay runs/a --set 'cluster.degraded=[{\"rank\": 1, \"device\": 0.5}]'   a "
      "slow "
      "rank\n"
      "  polyphony replay runs/a --set layout.microbatches=2 --report replay.html\n"
      "  polyphony replay runs/a --set model.vision.train=frozen\n"
      "  polyphony replay runs/a --set layout.schedule=gpipe\n"
      "  polyphony replay runs/a --set cluster.node.ranks=4 --set layout.all.ranks=4   twice the "
      "data-parallel ranks\n"
      "  polyphony replay runs/a --faster vision=2        other devices for one module\n"
      "  polyphony replay runs/a --faster update=1.5      a fused kernel; the answer lists the "
      "classes of ops\n"
      "  polyphony replay runs/a --vary cluster.node.link=100MBps..1600MBps\n"
      "  polyphony replay runs/a --execution-trace et      as measured, for other simulators\n"
      "  polyphony replay rank-*.pt.trace.json.gz --links 2          a profiler's traces: links "
      "twice "
      "as fast\n"
      "  polyphony replay rank-*.pt.trace.json.gz --faster gemm=1.5 --fuse elementwise\n"
      "  polyphony replay rank-*.pt.trace.json.gz --group default_pg=16\n"
      "  polyphony replay rank-*.pt.trace.json.gz --set 'cluster.degraded=[{\"rank\": 1, "
      "\"device\": "
      "0.5}]'");
  add_measurement_options(args);
  args.add_profile("profile for ops whose size changes, fitted to the run first");
  args.add_overrides();
  args.add()(
      "faster",
      "make a class of ops so many times as fast (0.5: half as fast); a class is named by its "
      "first words, \"language backward\" or \"language\"; repeatable",
      cxxopts::value<std::vector<std::string>>(), "CLASS=TIMES")(
      "vary", "replay once for each value, PATH=A,B,C or PATH=A..B (doubling); repeatable",
      cxxopts::value<std::vector<std::string>>(), "PATH=VALUES")(
      "report", "write a page with both Gantts and critical paths", cxxopts::value<std::string>());
  add_execution_trace(args);
  add_kernel_options(args);
  if (args.parse(argc, argv)) return 0;
  if (!args.has("runs"))
    throw InputError("polyphony replay", "", "needs a RUN",
                     "polyphony replay --help shows an example");
  if (args.has("vary") && args.has("execution-trace"))
    throw InputError("--execution-trace", "", "writes one step, --vary replays several",
                     "use --set instead of --vary");
  if (are_profiles(args)) return replay_kernels_command(args);
  refuse_kernel_options(args);
  const std::vector<traces::Measurement> measurements = read_measurements(args);
  if (measurements.size() != 1)
    throw InputError("polyphony replay", "", "replays one run at a time", "name one RUN");
  require_replayable(measurements.front());
  const RunProfiles profiles = profiles_for(args, measurements.front());
  const std::vector<Variation> variations = parse_variations(args.repeated("vary"));
  std::vector<ReplayAnswer> answers;
  for (const std::vector<std::string>& values : combinations(variations)) {
    std::vector<Override> overrides = args.overrides();
    for (const Override& override : overrides_of(variations, values)) overrides.push_back(override);
    answers.push_back(ask(args, measurements.front(), profiles, overrides));
  }
  if (args.has("report")) write_file(args.text("report"), traces::to_html(replay_page(answers)));
  const ReplayAnswer& first = answers.front();
  const ReplayedRun& last = first.after ? *first.after : first.before;
  write_execution_trace(args, last.program, last.timeline, last.machine.cluster,
                        last.machine.profile);
  if (args.json())
    std::cout << to_json(answers).dump(2) << "\n";
  else
    std::cout << (variations.empty() ? replay_text(answers.front()) : replays_text(answers));
  return 0;
}

}  // namespace polyphony::sim
