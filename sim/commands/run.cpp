// polyphony run: trains a scenario on ranks of this machine, or its phases one after the other.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "shared/checkpoint/carried_weights.h"
#include "shared/text/json_form.h"
#include "shared/weights/pretrained.h"
#include "sim/cli/command.h"
#include "sim/cli/local_run.h"
#include "sim/cli/worker_options.h"
#include "sim/console/console.h"
#include "sim/launching/phase_folders.h"

namespace polyphony::sim {
namespace {

constexpr const char* kPhase = "--phase NAME trains one of them";

// Returns what --resume, --auto-resume and --fresh say about a run in `folder`.
EarlierRun earlier_in(const Arguments& args, const std::string& folder) {
  const bool again = args.has("auto-resume") && holds_run(folder);
  return earlier_run(args.has("resume") || again, args.has("fresh"));
}

// Refuses options that would mean another thing in each phase.
void check_phase_options(const Arguments& args) {
  if (args.has("keep-checkpoints") && args.text("keep-checkpoints") == "0")
    throw InputError(
        "--keep-checkpoints", "",
        "must be at least 1: a phase begins with the last checkpoint of the one before", "omit it");
  if (args.has("phase")) return;
  if (args.has("steps"))
    throw InputError("--steps", "", "is of one run, but the scenario has phases",
                     "each ends at its training.steps; " + std::string(kPhase));
  if (args.has("kineto"))
    throw InputError("--kineto", "", "names steps of one run, but the scenario has phases", kPhase);
  if (args.has("plans"))
    throw InputError("--plans", "", "is the file of one run, but the scenario has phases", kPhase);
}

void check_data_option(const Arguments& args, const std::vector<TrainingPhase>& phases) {
  const bool used = std::any_of(phases.begin(), phases.end(), [](const TrainingPhase& phase) {
    return std::holds_alternative<EasyVqaData>(phase.scenario.data.source);
  });
  if (args.has("data") && !used)
    throw InputError("--data", "", "would be ignored: the scenario's data source is not easy-vqa",
                     "leave it out, or set data.source to \"easy-vqa\"");
}

// --weights-partial: modules whose folder has no tensors of them begin at random.
void begin_partial_at_random(const Arguments& args, Scenario& scenario) {
  if (!args.has("weights-partial")) return;
  if (const auto random = begin_missing_at_random(scenario.model, scenario.weights);
      !random.empty())
    std::cerr << "run: randomly initialized, because the folder of weights has no tensors of it: "
              << joined(random) << "\n";
}

// Returns whether the run continues from a checkpoint of its own.
bool continues(const LocalRun& run) {
  return run.earlier == EarlierRun::resume && !steps_in(RunPaths{run.out}.checkpoints()).empty();
}

// Says so if the run has no steps left to train.
void tell_if_done(const LocalRun& run) {
  if (!continues(run)) return;
  const std::int64_t done = steps_in(RunPaths{run.out}.checkpoints()).back();
  if (done >= run.steps)
    std::cerr << "run: " << run.out << " has a checkpoint of step " << done
              << ": nothing is left to train up to step " << run.steps << " (--steps trains on)\n";
}

// Throws InputError if the run will begin with parameters of another run, and cannot.
void check_weights_from(const LocalRun& run) {
  if (!run.weights_from.empty() && !continues(run))
    find_carried_weights(run.weights_from, run.scenario.model);
}

// Throws InputError if --fresh would remove the run that --weights-from names.
void check_not_removed(const Arguments& args, const std::vector<std::string>& names) {
  if (!args.has("weights-from")) return;
  std::error_code absent;
  for (const std::string& name : names)
    if (std::filesystem::equivalent(phase_folder(args.text("out"), name), args.text("weights-from"),
                                    absent))
      throw InputError("--weights-from", "", "names phase \"" + name + "\", which --fresh removes",
                       "move its folder, or choose another --out folder");
}

// Interrupted is not done: a script that goes on after training has to stop here too.
int exit_code(const TrainedRun& trained) {
  if (trained.result.exit_code == 0 && trained.result.interrupted)
    return static_cast<int>(ExitCode::failed);
  return trained.result.exit_code;
}

// Trains one scenario, or one of the phases `names` of the file.
int run_one(const Arguments& args, const std::vector<std::string>& names) {
  const std::string path = args.require("scenario"), phase = args.phase();
  std::vector<TrainingPhase> phases{{phase, read_scenario_file(path, args.overrides(), phase)}};
  check_data_option(args, phases);
  LocalRun run{std::move(phases.front().scenario)};
  begin_partial_at_random(args, run.scenario);
  run.steps = args.has("steps") ? args.integer("steps") : run.scenario.training.steps;
  run.out = phase.empty() ? args.text("out") : phase_folder(args.text("out"), phase);
  run.earlier = earlier_in(args, run.out);
  run.weights_from = args.text("weights-from");
  const auto found = std::find(names.begin(), names.end(), phase);
  if (found != names.end()) {
    if (run.earlier == EarlierRun::resume && !args.has("steps") && has_ended(run.out, run.steps)) {
      std::cerr << "run: phase " << phase << " has ended: " << run.out << "\n";
      if (args.json())
        std::cout
            << nlohmann::json{{"phase", phase}, {"out", run.out}, {"ended_before", true}}.dump(2)
            << "\n";
      return 0;
    }
    if (!has_ended(run.out, run.steps) || run.earlier == EarlierRun::remove)
      check_later_phases(args.text("out"), phase, {found + 1, names.end()});
    if (found != names.begin() && run.weights_from.empty() && !continues(run)) {
      const std::string before = *(found - 1);
      run.weights_from = phase_folder(args.text("out"), before);
      const Scenario earlier = read_scenario_file(path, args.overrides(), before);
      if (!has_ended(run.weights_from, earlier.training.steps))
        throw InputError(
            run.weights_from, "",
            "phase \"" + before + "\", with whose parameters \"" + phase +
                "\" begins, has not ended there",
            "train it first: --phase " + before + "; or name another run: --weights-from RUN");
    }
  }
  check_weights_from(run);
  prepare_run(args, run);
  tell_if_done(run);
  const TrainedRun trained = train_run(args, run);
  if (!phase.empty() && trained.ended() && !args.has("steps"))
    record_end(run.out, run.scenario.training.steps, trained.summary["steps"].get<std::int64_t>());
  if (args.json())
    std::cout << run_json(run, trained).dump(2) << "\n";
  else
    std::cout << run_text(run, trained);
  return exit_code(trained);
}

// Prepares the phases from position `first` on, in order: nothing runs before all can.
std::vector<LocalRun> prepare_phases(const Arguments& args, std::vector<TrainingPhase>& phases,
                                     std::size_t first) {
  std::vector<LocalRun> runs;
  for (std::size_t i = first; i < phases.size(); ++i) {
    LocalRun& run = runs.emplace_back(LocalRun{std::move(phases[i].scenario)});
    run.steps = run.scenario.training.steps;
    run.out = phase_folder(args.text("out"), phases[i].name);
    if (args.has("fresh"))
      run.earlier = EarlierRun::remove;
    else if (holds_run(run.out))
      run.earlier = EarlierRun::resume;
    run.weights_from =
        i > 0 ? phase_folder(args.text("out"), phases[i - 1].name) : args.text("weights-from");
    if (i == first) check_weights_from(run);
    const std::string where = "in phase \"" + phases[i].name + "\": ";
    try {
      prepare_run(args, run);
    } catch (const NoAnswer& error) {
      throw NoAnswer(error.code, error.file, error.pointer, where + error.what_is_wrong,
                     error.hint);
    } catch (const InputError& error) {
      if (error.file != run.scenario.file) throw;
      throw InputError(error.file, error.pointer, where + error.what_is_wrong, error.hint);
    }
  }
  return runs;
}

int run_phases(const Arguments& args) {
  const std::string out = args.text("out");
  std::vector<TrainingPhase> phases = read_phases_file(args.require("scenario"), args.overrides());
  check_data_option(args, phases);
  for (TrainingPhase& phase : phases) begin_partial_at_random(args, phase.scenario);
  const bool begun = std::any_of(phases.begin(), phases.end(), [&](const TrainingPhase& phase) {
    return holds_run(phase_folder(out, phase.name));
  });
  if (args.has("resume") && !begun)
    throw InputError(out, "", "holds no phase to continue",
                     "start a new run, or give the right folder");
  const EarlierRun earlier =
      earlier_run(args.has("resume") || (args.has("auto-resume") && begun), args.has("fresh"));
  const std::size_t first = first_to_train(out, phases, earlier);
  std::vector<std::string> names;
  for (const TrainingPhase& phase : phases) names.push_back(phase.name);
  if (earlier == EarlierRun::remove) check_not_removed(args, names);
  const std::vector<LocalRun> runs = prepare_phases(args, phases, first);
  if (earlier == EarlierRun::remove) remove_phases(out, {names.begin() + 1, names.end()});
  nlohmann::json answers = nlohmann::json::array();
  for (std::size_t i = 0; i < first; ++i) {
    const std::string folder = phase_folder(out, names[i]);
    answers.push_back({{"phase", names[i]}, {"out", folder}, {"ended_before", true}});
    std::cerr << "run: phase " << names[i] << " has ended: " << folder << "\n";
  }
  int code = 0;
  for (std::size_t i = first; i < names.size() && code == 0; ++i) {
    const LocalRun& run = runs[i - first];
    const std::string title = "phase " + names[i] + " (" + std::to_string(i + 1) + " of " +
                              std::to_string(names.size()) + ")";
    std::cerr << "run: " << title << ": to step " << run.steps << " in " << run.out << "\n";
    const TrainedRun trained = train_run(args, run);
    if (trained.ended())
      record_end(run.out, run.steps, trained.summary["steps"].get<std::int64_t>());
    code = exit_code(trained);
    answers.push_back(run_json(run, trained));
    answers.back()["phase"] = names[i];
    if (!args.json())
      std::cout << (i > first ? "\n" : "") << title << "\n" << run_text(run, trained) << std::flush;
  }
  if (args.json()) std::cout << nlohmann::json{{"out", out}, {"phases", answers}}.dump(2) << "\n";
  return code;
}

}  // namespace

int run_command(int argc, char** argv) {
  Arguments args(
      "run",
      "Trains the scenario's layout, or the best that its search finds, on ranks of this machine "
      "(one process each, which communicate over Gloo, or NCCL on GPUs). A module begins with the "
      "published weights that its key \"weights\" names, or is randomly initialized. It trains on "
      "texts, token files, images and audio with conversations, and mixtures of them; of recorded "
      "data sets the shapes are read, and the content is random.\n"
      "A scenario with phases is trained phase by phase, each in a folder of its own (OUT/PHASE) "
      "and "
      "with the parameters of the one before; --resume continues in the phase that was stopped.",
      "SCENARIO",
      "  polyphony run scenarios/tiny_non_colocated.json --out runs/tiny --steps 20 --trace-steps "
      "8:20\n"
      "  polyphony run scenarios/easy_vqa.json --out runs/vqa --evaluate-every 100 --stop-accuracy "
      "0.75\n"
      "  polyphony run scenarios/easy_vqa.json --out runs/vqa --resume\n"
      "  polyphony run my.json --out runs/mine --phase tune        one phase; without it all");
  args.add()("scenario", "scenario file; if it has no layout, the best of its search is trained",
             cxxopts::value<std::string>())(
      "out", "folder for metrics, traces and checkpoints",
      cxxopts::value<std::string>()->default_value("runs/latest"))(
      "steps", "train until this step; default: training.steps", cxxopts::value<int>())(
      "resume", "continue from the newest checkpoint in --out")(
      "auto-resume",
      "continue the run in --out if there is one, else begin it: for scripts that restart")(
      "fresh", "remove an earlier run in --out first")("checkpoint-every",
                                                       "seconds between checkpoints (default 60)",
                                                       cxxopts::value<std::string>())(
      "keep-checkpoints", "number of newest checkpoints that stay (default 2); 0: none is written",
      cxxopts::value<std::string>())(
      "keep-best", "keep also the checkpoint with the least held-out loss (with --evaluate-every)")(
      "wait-for-checkpoints",
      "training waits while a checkpoint is written, and no host memory is used for copies")(
      "evaluate-every", "steps between evaluations on held-out samples",
      cxxopts::value<std::string>())("evaluate-samples",
                                     "held-out samples per evaluation (default: all)",
                                     cxxopts::value<std::string>())(
      "save-answers",
      "write what the last evaluation predicts for each held-out sample to answers.jsonl in --out "
      "(with --evaluate-every)")("stop-accuracy", "stop at this share of right answers",
                                 cxxopts::value<std::string>())(
      "stop-patience", "stop after so many evaluations in a row without a lower held-out loss",
      cxxopts::value<std::string>())("trace-steps", "steps to record, FIRST:LAST",
                                     cxxopts::value<std::string>())(
      "kineto",
      "steps to record with PyTorch's profiler, such as 5 or 5,8:10, in OUT/kineto; `polyphony "
      "trace` reads them",
      cxxopts::value<std::string>(),
      "STEPS")("send-rate", "limit what every rank sends, such as 100MBps: emulates a slow link",
               cxxopts::value<std::string>())(
      "data", "folder of downloaded data sets (source easy-vqa)", cxxopts::value<std::string>())(
      "device", "cuda or cpu; default: cuda when the worker and this machine can",
      cxxopts::value<std::string>())("weights-from",
                                     "folder of a run: begin with the parameters of its newest "
                                     "checkpoint, unless this run resumes; "
                                     "the optimizer and the order of the data begin anew",
                                     cxxopts::value<std::string>(), "RUN")(
      "weights-partial",
      "a module for which its folder of \"weights\" has no tensors is randomly initialized")(
      "check", "check that each step's collectives are those that the model predicts")(
      "deterministic",
      "on GPUs: add up over ranks in a fixed order, for the same bits in every run; slower")(
      "attention",
      "on GPUs: auto: cuDNN's attention kernel for equal lengths, where it is faster, else "
      "FlashAttention-2; flash: always that",
      cxxopts::value<std::string>())("nvtx", "on GPUs: mark ops as NVTX ranges for Nsight Systems")(
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
  args.add_phase();
  add_planning_options(args);
  add_bad_step_options(args);
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  const std::vector<std::string> names = phases_of_file(args.require("scenario"));
  if (!names.empty()) check_phase_options(args);
  return names.empty() || args.has("phase") ? run_one(args, names) : run_phases(args);
}

}  // namespace polyphony::sim
