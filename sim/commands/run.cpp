// polyphony run: trains a scenario for real, on local ranks.
#include <iostream>

#include "shared/plan/plan.h"
#include "sim/cli/command.h"
#include "sim/cli/worker_options.h"
#include "sim/console/console.h"
#include "sim/console/free_memory.h"
#include "sim/sweep/sweep.h"

namespace polyphony::sim {
namespace {

// The scenario's layout, or the best that its search finds.
Layout choose_layout(const Scenario& scenario, const HardwareProfile& profile,
                     const Arguments& args) {
  if (scenario.layout) return require_layout(scenario);
  SweepOptions options;
  options.jobs = args.jobs();
  options.runnable = true;
  options.memory = free_memory();
  const Sweep result = sweep(scenario, profile, options);
  if (result.ranked.empty())
    throw InputError(scenario.file, "/search", "finds no layout that fits and runs here",
                     "polyphony sweep --runnable shows the reasons");
  std::cerr << "layout chosen by the sweep: "
            << describe(scenario.model, result.ranked.front().layout) << "\n";
  return result.ranked.front().layout;
}

std::vector<std::string> worker_arguments(const Arguments& args, const std::string& scenario,
                                          std::int64_t steps) {
  std::vector<std::string> list{scenario, "--out", args.text("out"), "--steps",
                                std::to_string(steps)};
  for (const char* option : {"checkpoint-every", "evaluate-every", "evaluate-samples",
                             "stop-accuracy", "trace-steps", "send-rate", "data", "device"})
    if (args.has(option)) {
      list.push_back(std::string("--") + option);
      list.push_back(args.text(option));
    }
  add_planning_arguments(args, list);
  for (const char* flag : {"resume", "fresh", "check", "deterministic", "nvtx"})
    if (args.has(flag)) list.push_back(std::string("--") + flag);
  return list;
}

// Of rank 0's last line. Without steps there is no loss; JSON has null for one that is not a
// number.
std::string summary_text(const Scenario& scenario, const nlohmann::json& summary) {
  std::string text = counted(summary["steps"].get<std::int64_t>(), "step", "steps");
  const Seconds step(summary["median_step_seconds"].get<double>());
  if (summary.contains("loss"))
    text += ", loss " + (summary["loss"].is_number() ? number_text(summary["loss"].get<double>(), 4)
                                                     : std::string("not a number"));
  if (step.count() > 0)
    text += ", median step " + seconds_text(step) + " (" +
            number_text(scenario.data.global_batch / step.count(), 0) + " samples/s)";
  if (summary.contains("accuracy") && summary["accuracy"].is_number())
    text += ", " + percent_text(summary["accuracy"].get<double>()) + " of held-out samples right";
  if (const std::string device = summary.value("device", "cpu"); device != "cpu")
    text += ", on " + device;
  if (summary.contains("plans"))
    text += "; planned while it trained, " +
            std::to_string(summary["plans"]["late"].get<std::int64_t>()) + " of " +
            std::to_string(summary["plans"]["steps"].get<std::int64_t>()) + " plans too late";
  return text + (summary["interrupted"].get<bool>() ? "; interrupted, --resume continues" : "");
}

}  // namespace

int run_command(int argc, char** argv) {
  Arguments args(
      "run",
      "Trains the scenario's layout for real on local ranks (processes that meet over Gloo).",
      "SCENARIO",
      "  polyphony run scenarios/tiny_non_colocated.json --out runs/tiny --steps 20 --trace-steps "
      "8:20\n"
      "  polyphony run scenarios/easy_vqa.json --out runs/vqa --evaluate-every 100 --stop-accuracy "
      "0.75\n"
      "  polyphony run scenarios/easy_vqa.json --out runs/vqa --resume");
  args.add()("scenario", "scenario file; without a layout the best of its search is taken",
             cxxopts::value<std::string>())(
      "out", "folder for metrics, traces and checkpoints",
      cxxopts::value<std::string>()->default_value("runs/latest"))(
      "steps", "train until this step; default: training.steps", cxxopts::value<int>())(
      "resume", "continue from the newest checkpoint in --out")(
      "fresh", "remove an earlier run in --out first")("checkpoint-every",
                                                       "seconds between checkpoints (default 60)",
                                                       cxxopts::value<std::string>())(
      "evaluate-every", "steps between evaluations on held-out samples",
      cxxopts::value<std::string>())("evaluate-samples",
                                     "held-out samples per evaluation (default: all)",
                                     cxxopts::value<std::string>())(
      "stop-accuracy", "stop at this share of right answers", cxxopts::value<std::string>())(
      "trace-steps", "steps to record, FIRST:LAST", cxxopts::value<std::string>())(
      "send-rate",
      "every rank sends no faster: 100MBps; what a slow link does, on a machine without",
      cxxopts::value<std::string>())("data", "folder of downloaded data sets",
                                     cxxopts::value<std::string>())(
      "device", "cuda or cpu; default: cuda when the worker and this machine can",
      cxxopts::value<std::string>())("check", "compare inner collectives with their expansion")(
      "deterministic",
      "on GPUs: sums over ranks in their order, the same bits at all times; slower")(
      "nvtx", "on GPUs: ranges of ops for Nsight Systems")(
      "jobs", "worker processes of that search; 0: one per core",
      cxxopts::value<int>()->default_value("0"));
  args.add_profile("for the search, and for stages that the layout does not split");
  args.add_schedule();
  add_planning_options(args);
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  Scenario scenario =
      load_scenario(args.require("scenario"), {}, args.has("data") ? args.text("data") : "");
  apply_schedule(scenario, args.text("schedule"));
  const HardwareProfile profile = load_profile(scenario, args.profile());
  const Layout layout = choose_layout(scenario, profile, args);
  if (const auto no = check_runnable(scenario, layout))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "/layout", no->reason,
                   "polyphony simulate predicts it");
  const std::int64_t steps = args.has("steps") ? args.integer("steps") : scenario.training.steps;
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
    std::cout << answer.dump(2) << "\n";
  } else {
    std::cout << describe(scenario.model, layout) << "\n"
              << summary_text(scenario, summary) << "\n";
  }
  // Not done: a script that trains and then goes on has to stop here too.
  if (result.exit_code == 0 && result.interrupted) return static_cast<int>(ExitCode::failed);
  return result.exit_code;
}

}  // namespace polyphony::sim
