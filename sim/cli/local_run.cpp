#include "sim/cli/local_run.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "shared/check/check.h"
#include "shared/files/free_memory.h"
#include "shared/plan/plan.h"
#include "shared/scenario/learning_rate.h"
#include "shared/scenario/typical_batch.h"
#include "shared/weights/pretrained.h"
#include "sim/cli/worker_options.h"
#include "sim/console/console.h"
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

// Returns the predicted time of a step, if it can be predicted here. Throws NoAnswer if this
// machine has too little memory for the ranks: before any of them starts.
std::optional<Seconds> check_memory(const Scenario& scenario, const Layout& layout,
                                    const HardwareProfile& profile, const Arguments& args) {
  const int ranks = world_size(layout);
  const Bytes free = free_memory();
  if (free.value <= 0) return {};
  const std::optional<RanksNeed> need = ranks_need(scenario, layout, profile, free);
  if (!need) return {};
  if (!computes_on_cpu(args) || need->memory <= free) return need->step;
  throw NoAnswer(ExitCode::infeasible, scenario.file, "/layout",
                 "its " + counted(ranks, "rank needs", "ranks need") + " about " +
                     bytes_text(need->memory) + " of memory together, this machine has " +
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

std::vector<std::string> worker_arguments(const Arguments& args, const LocalRun& run,
                                          const std::string& scenario) {
  std::vector<std::string> list{scenario, "--out", run.out, "--steps", std::to_string(run.steps)};
  if (!run.weights_from.empty()) {
    list.emplace_back("--weights-from");
    list.push_back(run.weights_from);
  }
  if (run.earlier != EarlierRun::refuse)
    list.emplace_back(run.earlier == EarlierRun::resume ? "--resume" : "--fresh");
  pass_on(args,
          {"checkpoint-every", "keep-checkpoints", "evaluate-every", "evaluate-samples",
           "stop-accuracy", "stop-patience", "trace-steps", "kineto", "send-rate", "data", "device",
           "attention"},
          list);
  add_planning_arguments(args, list);
  add_bad_step_arguments(args, list);
  for (const char* flag :
       {"keep-best", "save-answers", "wait-for-checkpoints", "check", "deterministic", "nvtx"})
    if (args.has(flag)) list.push_back(std::string("--") + flag);
  return list;
}

// Whether evaluations have samples to read.
bool has_held_out(const Data& data) {
  const auto names_one = [](const auto& source) {
    using Source = std::decay_t<decltype(source)>;
    if constexpr (requires { source.held_out; }) return !source.held_out.empty();
    return std::is_same_v<Source, EasyVqaData>;
  };
  if (const auto* mixture = std::get_if<MixtureData>(&data.source))
    return std::any_of(mixture->parts.begin(), mixture->parts.end(),
                       [&](const MixturePart& part) { return std::visit(names_one, part.source); });
  return std::visit(names_one, data.source);
}

}  // namespace

void prepare_run(const Arguments& args, LocalRun& run) {
  Scenario& scenario = run.scenario;
  if (args.has("evaluate-every") && args.text("evaluate-every") != "0" &&
      !has_held_out(scenario.data))
    throw InputError(scenario.file, "/data/source", "has no held-out samples to evaluate on",
                     "name some by \"held_out\", or omit --evaluate-every");
  open_samples(scenario, args.text("data"));
  if (const std::string recorded = recorded_text(scenario); !recorded.empty())
    if (!args.json()) std::cout << "Trains on " << recorded << "." << std::endl;
  apply_schedule(scenario, args.text("schedule"));
  run.profile = load_profile(scenario, args.profile(), args.overrides());
  run.layout = choose_layout(scenario, run.profile, args);
  if (const auto no = check_runnable(scenario, run.layout))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "/layout", no->reason,
                   "polyphony simulate predicts it");
  run.predicted = check_memory(scenario, run.layout, run.profile, args);
  if (run.earlier != EarlierRun::resume && run.weights_from.empty())
    PretrainedModel(scenario.model, scenario.weights).check();
  if (const Training& training = scenario.training;
      training.decay != RateDecay::constant && run.steps > decay_end(training))
    std::cerr << "run: steps from " << decay_end(training)
              << " on are trained at the least learning rate: its decay ends there "
                 "(/training/decay_steps, or /training/steps)\n";
}

TrainedRun train_run(const Arguments& args, const LocalRun& run) {
  const RunFolder claim(run.out, run.earlier, "polyphony run");
  if (!claim.note().empty()) std::cerr << "run: " << claim.note() << "\n";
  const std::string resolved = give_scenario(run.scenario, run.layout, run.profile, claim);
  LaunchOptions options;
  options.command.folder_lock = claim.lock();
  options.command.ranks = world_size(run.layout);
  options.command.arguments = worker_arguments(args, run, resolved);
  TrainedRun trained{launch_with_progress(options, "run", run.out, run.steps, run.predicted), {}};
  const LaunchResult& result = trained.result;
  trained.summary = nlohmann::json::parse(result.output, nullptr, false);
  if (!trained.summary.is_object()) throw no_answer(result, "run");
  if (result.exit_code != 0 && !result.what.empty()) std::cerr << "run: " << result.what << "\n";
  return trained;
}

nlohmann::json run_json(const LocalRun& run, const TrainedRun& trained) {
  nlohmann::json answer = trained.summary;
  answer["layout"] = describe(run.scenario.model, run.layout);
  answer["out"] = run.out;
  if (run.predicted) answer["predicted_step_seconds"] = run.predicted->count();
  if (!recorded_text(run.scenario).empty()) answer["content"] = "random";
  return answer;
}

std::string run_text(const LocalRun& run, const TrainedRun& trained) {
  return paragraph(layout_words(run.scenario.model, run.layout, run.scenario.cluster)) +
         trained_text(run.scenario, trained.summary, run.predicted) + "\n";
}

}  // namespace polyphony::sim
