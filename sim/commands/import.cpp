// polyphony import: a scenario from another framework's launch script, log or configuration.
#include <filesystem>
#include <iostream>

#include "shared/check/check.h"
#include "shared/files/files.h"
#include "shared/files/whole.h"
#include "shared/text/json_form.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/cluster_options.h"
#include "sim/cli/command.h"
#include "sim/cli/measurements.h"
#include "sim/commands/commands.h"
#include "sim/console/console.h"
#include "sim/evidence/quick_step.h"
#include "sim/evidence/step_evidence.h"
#include "sim/frameworks/import.h"
#include "sim/question/file_cluster.h"
#include "sim/question/question.h"
#include "sim/shown/import_text.h"
#include "sim/text/layout_words.h"
#include "traces/evidence/steady_steps.h"

namespace polyphony::sim {
namespace {

std::map<std::string, std::string> environment_of(const Arguments& args) {
  std::map<std::string, std::string> environment;
  if (!args.has("env")) return environment;
  for (const std::string& word : args.repeated("env")) {
    const std::size_t cut = word.find('=');
    if (cut == std::string::npos || cut == 0)
      throw InputError("--env", "", "\"" + word + "\" is not NAME=VALUE", "--env NNODES=4");
    environment[word.substr(0, cut)] = word.substr(cut + 1);
  }
  return environment;
}

ImportOptions options_of(const Arguments& args) {
  ImportOptions options;
  if (args.has("model")) options.models = args.repeated("model");
  const ClusterOptions cluster = cluster_options(args);
  options.machines = cluster.machines;
  options.oversubscription = cluster.oversubscription;
  options.nic = cluster.nic;
  options.price = cluster.price;
  if (args.has("gpus")) options.gpus = gpus_of(cluster.machines, args.text("gpus"), "--gpus");
  options.device = args.text("device");
  if (!args.has("gpus") && options.device.empty()) options.device = device_of(cluster.machines);
  options.images = args.text("images");
  if (args.has("seq")) options.sequence = parse_count(args.text("seq"), "--seq");
  if (args.has("global-batch"))
    options.global_batch = parse_count(args.text("global-batch"), "--global-batch");
  return options;
}

// Fills in what a log of the run says.
void add_log(const std::string& path, const std::string& text, const Scenario& scenario,
             bool required, StepBeside& beside) {
  std::optional<traces::FrameworkLog> log;
  try {
    log = traces::read_framework_log(text, path);
  } catch (const InputError&) {
    if (required) throw;
    return;  // the arguments alone were printed
  }
  const std::int64_t samples = scenario.data.global_batch;
  const traces::StepWork work{samples * scenario.data.sequence, samples, scenario.cluster.ranks()};
  if (const auto steps = traces::steady_steps(log->attempts, work)) {
    beside.measured = steps->step;
    beside.lines = steps->used;
    beside.log = path;
  }
}

// Fills in the step that profiles of the run have. The scenario has its samples.
void add_profiles(const std::vector<std::string>& paths, const Scenario& scenario,
                  const HardwareProfile& profile, StepBeside& beside) {
  const traces::RankSet ranks = read_profiles(paths, "", "import");
  print_notes(ranks);
  const StepEvidence evidence = evidence_of_profiles(ranks.traces, scenario, profile);
  for (const std::string& note : evidence.notes) std::cerr << note << "\n";
  if (!evidence.step) {
    std::cerr << evidence.source << ": is not of whole steps of this layout, so that no step is "
              << "measured; polyphony calibrate learns from its kernels\n";
    return;
  }
  beside.measured = *evidence.step;
  beside.lines = static_cast<int>(evidence.kernels.front().steps);
  beside.profiled = true;
  for (const std::string& path : paths) beside.log += (beside.log.empty() ? "" : " ") + path;
}

}  // namespace

int import_command(int argc, char** argv) {
  Arguments args(
      "import",
      "Reads how a run is started in another framework, and writes a scenario with its model, data "
      "and layout: a "
      "launch script, the arguments in a log, or a saved configuration of Megatron-LM, "
      "Megatron-Bridge, ms-swift, "
      "torchtitan, LLaMA-Factory, verl, NeMo-RL or transformers' Trainer with DeepSpeed or "
      "Accelerate. Every "
      "setting is accounted "
      "for: used, approximated, not modeled, without effect, or not understood. Nothing is "
      "executed.",
      "FILE... --gpus NODESxGPUSxNAME",
      "  polyphony import train.sh --gpus 4x8xH100 --out today.json    Megatron-LM: the script has "
      "the model\n"
      "  polyphony import run.log --device H100 --out today.json       arguments that the run "
      "printed, and its steps\n"
      "  polyphony import sft.yaml ds_z3.json --model Qwen2.5-7B/config.json --gpus 8xA100-80 "
      "--out today.json\n"
      "  polyphony import train.sh --log slurm-123.out --env TP=4 --gpus 2x8xH100 --out "
      "today.json\n"
      "  polyphony why today.json                                      what would be faster?");
  args.add()(
      "files",
      "launch scripts, logs with printed arguments, configurations (YAML, JSON, TOML) of one run",
      cxxopts::value<std::vector<std::string>>(), "FILE")(
      "from",
      "the framework, if it is not recognized: megatron-lm, megatron-bridge, ms-swift, "
      "llama-factory, "
      "torchtitan, hf-trainer, verl, nemo-rl",
      cxxopts::value<std::string>(), "NAME")("model",
                                             "config.json of the model, its folder, or a preset, "
                                             "where the files do not state its dimensions; "
                                             "repeat it for an encoder and a language model",
                                             cxxopts::value<std::vector<std::string>>(), "CONFIG")(
      "gpus", "all accelerators of the run: 4x8xH100", cxxopts::value<std::string>(), "N")(
      "device", "their name alone, where the files say how many there are: H100",
      cxxopts::value<std::string>(), "NAME")(
      "seq", "tokens of a sequence, where the files do not state it", cxxopts::value<std::string>(),
      "TOKENS")("images", "images of a sample: 8, 8x1024 patches, 8x448px",
                cxxopts::value<std::string>(), "N")(
      "global-batch", "samples of a step, instead of the files'", cxxopts::value<std::string>(),
      "N")("env", "a variable that the script takes from its environment; repeatable",
           cxxopts::value<std::vector<std::string>>(),
           "NAME=VALUE")("log", "log of the run: its measured step is shown beside the prediction",
                         cxxopts::value<std::string>(), "FILE")(
      "trace", "the same from a profile of its GPUs (PyTorch, Nsight Systems); repeat it for ranks",
      cxxopts::value<std::vector<std::string>>(),
      "FILE")("all", "also list the settings that are understood, and those without effect")(
      "out", "file of the scenario; stdout when absent", cxxopts::value<std::string>(), "FILE");
  add_cluster_options(args);
  args.positional({"files"});
  if (args.parse(argc, argv)) return 0;
  args.check_outputs({"out"});
  if (!args.has("files"))
    throw InputError(
        "import", "", "a file is missing",
        "a launch script, a log or a configuration: polyphony import train.sh --gpus 8xH100");
  if (args.has("log") && args.has("trace"))
    throw InputError("--trace", "", "is given with --log: both would state the measured step",
                     "leave out one of them");
  std::optional<Framework> stated;
  if (args.has("from")) {
    const std::vector<std::string> known = enum_names<Framework>();
    if (std::find(known.begin(), known.end(), args.text("from")) == known.end())
      throw InputError("--from", "", "there is no framework \"" + args.text("from") + "\"",
                       suggest(args.text("from"), known));
    stated = enum_named<Framework>(args.text("from"));
  }
  std::vector<NamedText> files;
  for (const std::string& path : args.repeated("files")) files.push_back({path, read_file(path)});
  const std::string out = args.text("out");
  ImportAnswer answer;
  const FrameworkSettings read = read_settings(files, read_file, stated, environment_of(args));
  answer.imported = import_settings(read, options_of(args), read_file,
                                    std::filesystem::path(out).parent_path().string());
  Scenario& scenario = answer.imported.scenario;
  scenario.file = out.empty() ? "scenario.json" : out;
  if (args.has("log"))
    add_log(args.text("log"), read_file(args.text("log")), scenario, true, answer.step);
  else if (read.printed && !args.has("trace"))
    for (const NamedText& log : files) add_log(log.path, log.text, scenario, false, answer.step);
  if (answer.imported.illegal.empty()) {
    answer.layout = layout_words(scenario.model, *scenario.layout, scenario.cluster);
    read_samples(scenario);
    const HardwareProfile profile = load_profile(scenario, {});
    if (args.has("trace")) add_profiles(args.repeated("trace"), scenario, profile, answer.step);
    const Prediction predicted = quick_step(scenario, profile);
    answer.step.predicted = predicted.step();
    answer.step.memory = most_memory(predicted);
    answer.step.room = scenario.cluster.device.memory;
  }
  if (!out.empty()) {
    write_file(out, answer.imported.text);
    answer.written = out;
  }
  if (args.json()) {
    std::cout << to_json(answer).dump(2) << "\n";
  } else if (out.empty()) {
    std::cout << answer.imported.text << std::flush;
    std::cerr << import_text(answer, args.has("all"));
  } else {
    std::cout << import_text(answer, args.has("all"));
  }
  return static_cast<int>(answer.imported.illegal.empty() ? ExitCode::ok : ExitCode::infeasible);
}

}  // namespace polyphony::sim
