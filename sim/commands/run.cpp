// polyphony run: trains a scenario on ranks of this machine.
#include <filesystem>
#include <iostream>

#include "shared/check/check.h"
#include "shared/plan/plan.h"
#include "shared/scenario/learning_rate.h"
#include "shared/scenario/typical_batch.h"
#include "shared/weights/pretrained.h"
#include "sim/cli/command.h"
#include "sim/cli/worker_options.h"
#include "sim/console/console.h"
#include "sim/console/free_memory.h"
#include "sim/prediction/ranks_memory.h"
#include "sim/shown_runs/trained_text.h"
#include "sim/sweep/sweep.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

constexpr int kMostRanksPerCore = 4;

// Whether the ranks will compute on this machine's CPU cores: as far as can be known before they
// start.
bool computes_on_cpu(const Arguments& args) {
  if (args.has("device")) return args.text("device") == "cpu";
  return !std::filesystem::exists("/dev/nvidiactl");
}

// Throws NoAnswer if this machine has too few cores to start the ranks of `place`, "/layout" or
// "/cluster".
void check_ranks(const Scenario& scenario, int ranks, const std::string& place,
                 const Arguments& args) {
  if (!computes_on_cpu(args) || args.has("oversubscribe")) return;
  const int cores = cores_here();
  if (ranks > kMostRanksPerCore * cores)
    throw NoAnswer(
        ExitCode::infeasible, scenario.file, place,
        "has " + count_text(ranks) + " ranks, this machine has " + counted(cores, "core", "cores") +
            ": at most " + std::to_string(kMostRanksPerCore) + " ranks a core are started",
        "`polyphony rehearse` runs many ranks and sleeps through their compute, `polyphony "
        "simulate` predicts the step; --oversubscribe starts them all the same");
}

// Throws NoAnswer if this machine has too little memory for the ranks: before any of them starts.
void check_memory(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                  const Arguments& args) {
  if (!computes_on_cpu(args)) return;
  const int ranks = world_size(layout);
  const Bytes free = free_memory();
  if (free.value <= 0) return;
  const std::optional<Bytes> need = ranks_memory(scenario, layout, profile, free);
  if (!need || *need <= free) return;
  throw NoAnswer(ExitCode::infeasible, scenario.file, "/layout",
                 "its " + counted(ranks, "rank needs", "ranks need") + " about " +
                     bytes_text(*need) + " of memory together, this machine has " +
                     bytes_text(free) + " free",
                 "train a smaller model, sequence or number of ranks here; `polyphony simulate` "
                 "predicts this one");
}

// The scenario's layout, or the best that its search finds. A search uses all ranks of the cluster:
// whether they can be started is checked before it.
Layout choose_layout(const Scenario& scenario, const HardwareProfile& profile,
                     const Arguments& args) {
  if (scenario.layout) {
    const Layout& layout = require_layout(scenario);
    check_ranks(scenario, world_size(layout), "/layout", args);
    return layout;
  }
  check_ranks(scenario, scenario.cluster.ranks(), "/cluster", args);
  SweepOptions options;
  options.jobs = args.jobs();
  options.runnable = true;
  options.memory = free_memory();
  const Sweep result = sweep(scenario, profile, options);
  if (result.ranked.empty())
    throw InputError(scenario.file, "/search", "finds no layout that fits and that `run` can train",
                     "polyphony sweep --runnable shows the reasons");
  std::cerr << "layout chosen by the sweep: "
            << layout_words(scenario.model, result.ranked.front().layout, scenario.cluster) << "\n";
  return result.ranked.front().layout;
}

std::vector<std::string> worker_arguments(const Arguments& args, const std::string& scenario,
                                          std::int64_t steps) {
  std::vector<std::string> list{scenario, "--out", args.text("out"), "--steps",
                                std::to_string(steps)};
  for (const char* option :
       {"checkpoint-every", "keep-checkpoints", "evaluate-every", "evaluate-samples",
        "stop-accuracy", "stop-patience", "trace-steps", "send-rate", "data", "device"})
    if (args.has(option)) {
      list.push_back(std::string("--") + option);
      list.push_back(args.text(option));
    }
  add_planning_arguments(args, list);
  for (const char* flag : {"resume", "fresh", "keep-best", "check", "deterministic", "nvtx"})
    if (args.has(flag)) list.push_back(std::string("--") + flag);
  return list;
}

}  // namespace

int run_command(int argc, char** argv) {
  Arguments args(
      "run",
      "Trains the scenario's layout on ranks of this machine (one process each, which communicate "
      "over "
      "Gloo, or NCCL on GPUs). A module begins with the published weights that its key "
      "\"weights\" names, or at random. It reads texts, and images with conversations; recorded "
      "data "
      "sets give the shapes of samples, their content is random.",
      "SCENARIO",
      "  polyphony run scenarios/tiny_non_colocated.json --out runs/tiny --steps 20 --trace-steps "
      "8:20\n"
      "  polyphony run scenarios/easy_vqa.json --out runs/vqa --evaluate-every 100 --stop-accuracy "
      "0.75\n"
      "  polyphony run scenarios/easy_vqa.json --out runs/vqa --resume");
  args.add()("scenario", "scenario file; if it has no layout, the best of its search is trained",
             cxxopts::value<std::string>())(
      "out", "folder for metrics, traces and checkpoints",
      cxxopts::value<std::string>()->default_value("runs/latest"))(
      "steps", "train until this step; default: training.steps", cxxopts::value<int>())(
      "resume", "continue from the newest checkpoint in --out")(
      "fresh", "remove an earlier run in --out first")("checkpoint-every",
                                                       "seconds between checkpoints (default 60)",
                                                       cxxopts::value<std::string>())(
      "keep-checkpoints", "number of newest checkpoints that stay (default 2); 0: none is written",
      cxxopts::value<std::string>())(
      "keep-best", "keep also the checkpoint with the least held-out loss (with --evaluate-every)")(
      "evaluate-every", "steps between evaluations on held-out samples",
      cxxopts::value<std::string>())("evaluate-samples",
                                     "held-out samples per evaluation (default: all)",
                                     cxxopts::value<std::string>())(
      "stop-accuracy", "stop at this share of right answers", cxxopts::value<std::string>())(
      "stop-patience",
      "stop after so many evaluations in a row without a lower held-out loss",
      cxxopts::value<std::string>())(
      "trace-steps", "steps to record, FIRST:LAST", cxxopts::value<std::string>())(
      "send-rate", "limit what every rank sends, such as 100MBps: emulates a slow link",
      cxxopts::value<std::string>())("data", "folder of downloaded data sets (source easy-vqa)",
                                     cxxopts::value<std::string>())(
      "device", "cuda or cpu; default: cuda when the worker and this machine can",
      cxxopts::value<std::string>())(
      "weights-partial",
      "a module of whose tensors its folder of \"weights\" has none begins at random")(
      "check", "check that each step's collectives are those that the model predicts")(
      "deterministic",
      "on GPUs: add up over ranks in a fixed order, for the same bits in every run; slower")(
      "nvtx", "on GPUs: mark ops as NVTX ranges for Nsight Systems")(
      "oversubscribe", "start more than 4 ranks per CPU core")(
      "jobs",
      "threads of the search for a layout, if the scenario has a search and no layout; 0: one per "
      "core",
      cxxopts::value<int>()->default_value("0"));
  args.add_profile(
      "hardware profile to split layers into stages, and for the search if the scenario has no "
      "layout");
  args.add_overrides();
  args.add_schedule();
  add_planning_options(args);
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  const std::vector<Override> overrides = args.overrides();
  Scenario scenario =
      open_scenario(args.require("scenario"), overrides, args.has("data") ? args.text("data") : "");
  if (args.has("data") && !std::holds_alternative<EasyVqaData>(scenario.data.source))
    throw InputError("--data", "", "would be ignored: the scenario's data source is not easy-vqa",
                     "leave it out, or set data.source to \"easy-vqa\"");
  if (const std::string recorded = recorded_text(scenario); !recorded.empty())
    if (!args.json()) std::cout << "Trains on " << recorded << "." << std::endl;
  apply_schedule(scenario, args.text("schedule"));
  if (args.has("weights-partial"))
    if (const auto random = begin_missing_at_random(scenario.model, scenario.weights);
        !random.empty())
      std::cerr << "run: begins at random, since the folder of weights has no tensors of it: "
                << joined(random) << "\n";
  const HardwareProfile profile = load_profile(scenario, args.profile(), overrides);
  const Layout layout = choose_layout(scenario, profile, args);
  if (const auto no = check_runnable(scenario, layout))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "/layout", no->reason,
                   "polyphony simulate predicts it");
  check_memory(scenario, layout, profile, args);
  if (!args.has("resume")) PretrainedModel(scenario.model, scenario.weights).check();
  const std::int64_t steps = args.has("steps") ? args.integer("steps") : scenario.training.steps;
  if (const Training& training = scenario.training;
      training.decay != RateDecay::constant && steps > decay_end(training))
    std::cerr << "run: steps from " << decay_end(training)
              << " on are trained at the least learning rate: its decay ends there "
                 "(/training/decay_steps, or /training/steps)\n";
  const RunFolder claim(args.text("out"), earlier_run(args.has("resume"), args.has("fresh")),
                        "polyphony run");
  if (!claim.note().empty()) std::cerr << "run: " << claim.note() << "\n";
  const std::string resolved = give_scenario(scenario, layout, profile, claim);
  LaunchOptions options;
  options.command.folder_lock = claim.lock();
  options.command.ranks = world_size(layout);
  options.command.arguments = worker_arguments(args, resolved, steps);
  const LaunchResult result = launch_with_progress(options, "run", args.text("out"), steps);
  const nlohmann::json summary = nlohmann::json::parse(result.output, nullptr, false);
  if (!summary.is_object()) throw no_answer(result, "run");
  if (result.exit_code != 0 && !result.what.empty()) std::cerr << "run: " << result.what << "\n";
  if (args.json()) {
    nlohmann::json answer = summary;
    answer["layout"] = describe(scenario.model, layout);
    answer["out"] = args.text("out");
    if (!recorded_text(scenario).empty()) answer["content"] = "random";
    std::cout << answer.dump(2) << "\n";
  } else {
    std::cout << paragraph(layout_words(scenario.model, layout, scenario.cluster))
              << trained_text(scenario, summary) << "\n";
  }
  // Interrupted is not done: a script that goes on after training has to stop here too.
  if (result.exit_code == 0 && result.interrupted) return static_cast<int>(ExitCode::failed);
  return result.exit_code;
}

}  // namespace polyphony::sim
