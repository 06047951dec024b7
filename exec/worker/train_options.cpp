#include "exec/worker/train_options.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <initializer_list>

#include "exec/system/launch_env.h"
#include "exec/system/stop_signals.h"
#include "shared/check/check.h"
#include "shared/checkpoint/carried_weights.h"
#include "shared/checkpoint/phase_end_json.h"
#include "shared/files/run_paths.h"
#include "shared/files/whole.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/text/json_form.h"
#include "shared/text/quantity_text.h"

namespace polyphony::exec {
namespace {

HardwareProfile load_profile(const std::string& name) {
  if (const HardwareProfile* shipped = find_profile(name)) return *shipped;
  return parse_profile(read_file(name), name);
}

// Returns a number of the command line. Throws InputError if it is negative or NaN.
template <class T>
T at_least_zero(const cxxopts::ParseResult& args, const std::string& name) {
  const T value = args[name].as<T>();
  if (!(value >= 0))
    throw InputError("--" + name, "", "must not be negative",
                     "polyphony-worker --help explains the option");
  return value;
}

// The same for less than one.
template <class T>
T at_least_one(const cxxopts::ParseResult& args, const std::string& name) {
  const T value = args[name].as<T>();
  if (value < 1)
    throw InputError("--" + name, "", "must be at least 1 (got " + std::to_string(value) + ")",
                     "polyphony-worker --help explains the option");
  return value;
}

std::optional<BytesPerSecond> send_rate(const std::string& text) {
  if (text.empty()) return {};
  try {
    const BytesPerSecond rate = parse_rate(text);
    if (rate.value > 0) return rate;
  } catch (const InputError&) {  // reported below, with the option's name
  }
  throw InputError("--send-rate", "", "\"" + text + "\" is not a positive rate", "e.g. 100MBps");
}

// Only rank 0 reads replayed plans; it sends them to the others.
void read_planning(const cxxopts::ParseResult& args, const Scenario& scenario, Rank rank,
                   TrainOptions& options) {
  const Layout& layout = *scenario.layout;
  const std::string planning = args["planning"].as<std::string>(),
                    plans = args["plans"].as<std::string>();
  const bool live = planning == "live", replay = planning == "replay";
  if (!live && !replay && planning != "inline")
    throw InputError("--planning", "", "must be inline, live or replay (got \"" + planning + "\")",
                     "polyphony-worker --help explains the option");
  if (!live && !replay && !plans.empty())
    throw InputError("--plans", "", "requires --planning live, which writes the file, or replay",
                     "omit it");
  if (replay && plans.empty())
    throw InputError("--planning", "", "replay requires --plans",
                     "name a file that --planning live has written");
  if ((live || replay) && layout.planner == Planning::none)
    throw InputError("--planning", "", "the layout has no planner",
                     "give it one (\"planner\": \"entrain\"), or omit --planning");
  if (!live && !replay) return;
  if (const auto no = check_layout(scenario, without_planner(layout)))
    throw InputError(
        "--planning", "",
        "late steps use the layout without its planner, which is not legal: " + no->reason,
        "omit --planning, or change the layout");
  options.planner = Planner::live;
  options.live.budget = Seconds(at_least_zero<double>(args, "planning-seconds"));
  if (live) options.live.save = plans;
  if (replay && rank == Rank(0)) {
    options.live.replayed = parse_plans(read_records(plans), plans);
    if (options.live.replayed.empty())
      throw InputError(plans, "", "contains no plans",
                       "name a file that --planning live has written");
  }
}

// A run that continues from a checkpoint of its own needs no other weights.
void read_weights_from(const cxxopts::ParseResult& args, const Scenario& scenario,
                       TrainOptions& options) {
  options.weights_from = args["weights-from"].as<std::string>();
  if (options.weights_from.empty()) return;
  const RunPaths run{options.out};
  if (options.earlier == EarlierRun::resume && !steps_in(run.checkpoints()).empty()) return;
  std::error_code absent;
  if (!options.out.empty() &&
      std::filesystem::equivalent(options.weights_from, options.out, absent))
    throw InputError("--weights-from", "", "must name another run than --out",
                     "--resume continues the run in --out");
  find_carried_weights(options.weights_from, scenario.model);
  if (args["phase"].as<std::string>().empty()) return;
  const std::string earlier = RunPaths{options.weights_from}.scenario();
  if (!std::filesystem::exists(earlier)) return;
  const auto load = [](const std::string& path) { return read_file(path); };
  const std::int64_t steps = read_scenario(load(earlier), earlier, load).training.steps;
  if (!has_ended(options.weights_from, steps))
    throw InputError(options.weights_from, "",
                     "has not ended: its newest checkpoint is not of step " + std::to_string(steps),
                     "let the earlier phase end first");
}

// Reads --kineto, after the options of steps, traces and the folder.
void read_kineto(const cxxopts::ParseResult& args, TrainOptions& options) {
  options.kineto = parse_step_list(args["kineto"].as<std::string>(), "--kineto");
  if (options.kineto.empty()) return;
  if (options.out.empty())
    throw InputError("--kineto", "", "requires --out", "name the folder of the run");
  if (options.kineto.largest() >= options.steps)
    throw InputError("--kineto", "",
                     "step " + std::to_string(options.kineto.largest()) +
                         " does not exist: the run's last step is " +
                         std::to_string(options.steps - 1),
                     "steps count from 0; --steps " + std::to_string(options.kineto.largest() + 1) +
                         " trains it, too");
  for (const StepList::Part& part : options.kineto.parts)
    if (const std::int64_t step = std::max(part.first, options.trace_first);
        step < std::min(part.last, options.trace_last))
      throw InputError("--kineto", "",
                       "step " + std::to_string(step) +
                           " is also one of --trace-steps, whose times the profiler would change",
                       "give them different steps");
}

BadStepAction bad_step_action(const cxxopts::ParseResult& args, const std::string& option) {
  const std::string text = args[option].as<std::string>();
  const bool spikes = option == "spikes";
  std::string choices;
  for (const std::string& choice : enum_names<BadStepAction>()) {
    if (!spikes && choice == name(BadStepAction::ignore)) continue;
    if (text == choice) return enum_named<BadStepAction>(text);
    choices += (choices.empty() ? "" : ", ") + choice;
  }
  throw InputError("--" + option, "", "must be one of " + choices + " (got \"" + text + "\")",
                   "polyphony-worker --help explains the option");
}

// Throws InputError if one of the options is given although nothing uses it.
void refuse_unused(const cxxopts::ParseResult& args, std::initializer_list<const char*> options,
                   const std::string& needs) {
  for (const char* option : options)
    if (args.count(option))
      throw InputError(std::string("--") + option, "", "requires " + needs, "omit it");
}

// Reads what follows bad steps, after the options of the folder, checkpoints, plans and records.
void read_bad_steps(const cxxopts::ParseResult& args, TrainOptions& options) {
  BadStepPolicy& policy = options.bad_steps;
  policy.spikes = bad_step_action(args, "spikes");
  policy.non_finite = bad_step_action(args, "non-finite");
  policy.loss_factor = at_least_zero<double>(args, "spike-loss");
  policy.norm_factor = at_least_zero<double>(args, "spike-norm");
  policy.window = at_least_one<int>(args, "spike-window");
  policy.most_skips = at_least_zero<int>(args, "max-skips");
  policy.most_rewinds = at_least_one<int>(args, "max-rewinds");
  policy.rewind_every = at_least_one<std::int64_t>(args, "rewind-every");
  if (policy.spikes == BadStepAction::ignore)
    refuse_unused(args, {"spike-loss", "spike-norm", "spike-window"}, "--spikes");
  if (!policy.rewinds())
    return refuse_unused(args, {"max-rewinds", "rewind-every"},
                         "--spikes rewind or --non-finite rewind");
  const std::string option = policy.spikes == BadStepAction::rewind ? "--spikes" : "--non-finite";
  if (options.out.empty() || options.keep_checkpoints == 0)
    throw InputError(option, "", "rewind requires checkpoints",
                     "add --out, and keep checkpoints (--keep-checkpoints 2)");
  if (options.planner == Planner::live || options.trace_first >= 0 || !options.kineto.empty())
    throw InputError(option, "",
                     "rewind is not possible while steps are planned live or recorded, because it "
                     "trains steps again with other data",
                     "use skip, or omit --planning, --trace-steps and --kineto");
}

}  // namespace

bool resumes(const cxxopts::ParseResult& args) {
  const std::string scenario = RunPaths{args["out"].as<std::string>()}.scenario();
  return args.count("resume") > 0 ||
         (args.count("auto-resume") > 0 && std::filesystem::exists(scenario));
}

TrainOptions train_options(const cxxopts::ParseResult& args, const Scenario& scenario, Rank rank) {
  TrainOptions options;
  read_planning(args, scenario, rank, options);
  options.out = args["out"].as<std::string>();
  options.steps =
      args.count("steps") ? at_least_zero<std::int64_t>(args, "steps") : scenario.training.steps;
  options.earlier = earlier_run(resumes(args), args.count("fresh") > 0);
  if (const auto lock = process_environment()(kRunLock)) options.folder_lock = std::stoi(*lock);
  read_weights_from(args, scenario, options);
  options.checkpoint_every = Seconds(at_least_zero<double>(args, "checkpoint-every"));
  options.keep_checkpoints = at_least_zero<int>(args, "keep-checkpoints");
  options.keep_best = args.count("keep-best") > 0;
  options.saves_beside = args.count("wait-for-checkpoints") == 0;
  if (options.keep_best &&
      (args["evaluate-every"].as<std::int64_t>() == 0 || options.keep_checkpoints == 0))
    throw InputError("--keep-best", "",
                     "requires --evaluate-every, and checkpoints that are written",
                     "add --evaluate-every 100, or omit it");
  options.evaluate_every = at_least_zero<std::int64_t>(args, "evaluate-every");
  options.evaluate_samples = at_least_zero<int>(args, "evaluate-samples");
  options.save_answers = args.count("save-answers") > 0;
  if (options.save_answers && (options.evaluate_every == 0 || options.out.empty()))
    throw InputError("--save-answers", "", "requires --evaluate-every, and a folder by --out",
                     "add --evaluate-every 100, or omit it");
  options.stop_accuracy = at_least_zero<double>(args, "stop-accuracy");
  options.stop_patience = at_least_zero<int>(args, "stop-patience");
  if (options.stop_patience > 0 && options.evaluate_every == 0)
    throw InputError("--stop-patience", "", "requires --evaluate-every: it counts evaluations",
                     "add --evaluate-every 100, or omit it");
  options.ranges = args.count("nvtx") > 0;
  options.check_collectives = args.count("check") > 0;
  const std::string trace = args["trace-steps"].as<std::string>();
  if (!trace.empty()) {
    long long first = 0, last = 0;
    char rest = 0;
    if (std::sscanf(trace.c_str(), "%lld:%lld%c", &first, &last, &rest) != 2 || first < 0 ||
        last <= first)
      throw InputError("--trace-steps", "", "\"" + trace + "\" is not FIRST:LAST",
                       "e.g. --trace-steps 5:15");
    options.trace_first = first;
    options.trace_last = last;
  }
  read_kineto(args, options);
  read_bad_steps(args, options);
  for (const char* flag : {"resume", "auto-resume", "fresh"})
    if (args.count(flag) && options.out.empty())
      throw InputError(std::string("--") + flag, "", "requires --out",
                       "name the folder of the run");
  const std::string pace = args["pace"].as<std::string>();
  if (!pace.empty()) options.pace = load_profile(pace);
  options.pace_scale = at_least_zero<double>(args, "pace-scale");
  options.send_rate = send_rate(args["send-rate"].as<std::string>());
  options.interrupted = stop_asked;
  return options;
}

}  // namespace polyphony::exec
