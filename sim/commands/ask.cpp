// polyphony ask: searches the best layout for a question that needs no scenario file.
#include <filesystem>
#include <iostream>

#include "shared/files/files.h"
#include "shared/files/whole.h"
#include "shared/hardware/software.h"
#include "shared/text/json_form.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/cluster_options.h"
#include "sim/cli/command.h"
#include "sim/cli/saved_layouts.h"
#include "sim/cli/sweep_answer.h"
#include "sim/cli/sweep_options.h"
#include "sim/commands/commands.h"
#include "sim/console/console.h"
#include "sim/console/signal_counter.h"
#include "sim/frameworks/target_change.h"
#include "sim/question/file_cluster.h"
#include "sim/question/least_nodes.h"
#include "sim/question/question.h"
#include "sim/shown/headline.h"
#include "sim/shown/least_text.h"
#include "sim/sweep/sweep.h"

namespace polyphony::sim {
namespace {

// Stands for the file in messages about a question that is not saved.
constexpr const char* kUnsaved = "question.json";
// With --gpus ?xNAME, also the least number of nodes doubled so often is searched.
constexpr int kDoublings = 3;

// Of --effort, if nothing else is said: a first answer within seconds.
constexpr const char* kQuickEffort = "0.2";

std::string parent_of(const std::string& file) {
  return std::filesystem::path(file).parent_path().string();
}

AskOptions question_of(const Arguments& args) {
  AskOptions question;
  if (args.has("model")) question.models = args.repeated("model");
  const ClusterOptions cluster = cluster_options(args);
  question.machines = cluster.machines;
  question.oversubscription = cluster.oversubscription;
  question.nic = cluster.nic;
  question.price = cluster.price;
  // Without files, --gpus is needed.
  question.gpus =
      gpus_of(cluster.machines, cluster.machines.empty() ? args.require("gpus") : args.text("gpus"),
              "--gpus");
  if (args.has("seq")) question.sequence = parse_count(args.text("seq"), "--seq");
  if (args.has("global-batch"))
    question.global_batch = parse_count(args.text("global-batch"), "--global-batch");
  question.images = args.text("images");
  if (args.has("audio")) question.clips = args.integer("audio");
  if (args.has("merge")) question.merge = args.integer("merge");
  question.train = args.text("train");
  question.precision = args.text("precision");
  question.thorough = args.has("thorough");
  if (args.has("stack")) {
    question.stack = args.text("stack");
    if (!find_stack(question.stack))
      throw InputError("--stack", "", "there is no software stack \"" + question.stack + "\"",
                       suggest(question.stack, stack_names()));
  }
  // What a framework shall run is predicted as that framework runs it.
  if (question.stack.empty() && args.has("for"))
    question.stack = stack_of(parse_target(args.text("for")));
  return question;
}

Scenario scenario_of(const Arguments& args, const AskedScenario& asked, const std::string& file) {
  Scenario scenario = read_scenario(asked.text, file, read_file, goal_overrides(args));
  open_samples(scenario);
  return scenario;
}

// Finds the least number of nodes by small searches.
LeastNodes find_least(const Arguments& args, AskOptions question, const std::string& file) {
  constexpr int kMostNodes = 1024;
  // What fits is known from memory in closed form and a few Programs: few ops are enough.
  constexpr double kEffort = 0.02;
  Progress progress("ask, least number of nodes");
  return least_nodes(kMostNodes, [&](int nodes) {
    if (SignalCounter::seen() > 0) return true;  // ends the search for it
    question.gpus.nodes = nodes;
    const Scenario scenario =
        scenario_of(args, asked_scenario(question, read_file, parent_of(file)), file);
    SweepOptions options = sweep_options(args);
    options.predictor = Predictor::estimate;
    options.effort = kEffort;
    options.stopped = [] { return SignalCounter::seen() > 0; };
    options.progress = [&](double share, const std::string& what) {
      progress.show(share, counted(nodes, "node", "nodes") + ": " + what);
    };
    const Sweep found = sweep(scenario, load_profile(scenario, args.profile()), options);
    return !found.ranked.empty() && !found.over_margin && !found.none_runs;
  });
}

void print_assumed(const AskedScenario& asked) {
  if (asked.assumed.empty()) return;
  std::string text = "Assumed:\n";
  for (const std::string& line : asked.assumed)
    text += "  " + wrapped(line, screen_columns() - 2, 4) + "\n";
  std::cout << text << "\n" << std::flush;
}

}  // namespace

int ask_command(int argc, char** argv) {
  Arguments args(
      "ask",
      "Searches for the fastest layout of a question that is asked without a scenario file: "
      "config.json files of Hugging Face, accelerators, and data. What is not stated is assumed, "
      "and "
      "shown. --save keeps the question as a scenario, for `sweep`, `simulate`, `why` and `run`.",
      "--model CONFIG --gpus NODESxGPUSxNAME",
      "  polyphony ask --model llama-3.1-8b --gpus 8xH100\n"
      "  polyphony ask --model Qwen2-VL-7B/config.json --gpus 8x8xH100 --seq 8k --images 8x1024\n"
      "  polyphony ask --model siglip-so400m-14 --model llama-3.1-70b --gpus 64x8xH100 "
      "--global-batch 1024 --train projector,lora:language\n"
      "  polyphony ask --model llm/config.json --gpus 512xH100 --stack megatron-core --tokens 1e12 "
      "--objective days,dollars --price 2.50USD/GPUh --save q.json\n"
      "  polyphony ask --model llama-3.1-70b --gpus ?xH100    how many are needed, and what more "
      "buy\n"
      "  polyphony ask --model llama-3.1-70b --cluster nccl_topo.xml --cluster topology.conf    "
      "the "
      "machines that these files describe\n"
      "  polyphony sweep q.json --report q.html    goes on from the saved question");
  args.add()("model",
             "config.json of Hugging Face, its folder, or a preset; repeat it for an encoder and a "
             "language model. A composite model is one --model",
             cxxopts::value<std::vector<std::string>>(),
             "CONFIG")("gpus",
                       "64x8xH100: 64 nodes of 8; 512xH100: 512 in the nodes they ship in; H100: "
                       "one; ?xH100: how many "
                       "are needed",
                       cxxopts::value<std::string>(), "N")(
      "seq",
      "tokens of a sequence, images and audio included: 8192, 8k (8,192) or 1M (1,048,576) "
      "(default: 8k)",
      cxxopts::value<std::string>(), "TOKENS")(
      "images",
      "images of a sample: 8; 8x1024, of 1,024 patches each; 8x448px, of 448 pixels (default: a "
      "quarter of the tokens)",
      cxxopts::value<std::string>(),
      "N")("audio", "clips of audio of a sample (default: 1)", cxxopts::value<int>(), "N")(
      "merge",
      "patches a side that the projector joins into one token (default: the composite "
      "model's; of separate models 2, or 1 if an image has an odd number of patches a side)",
      cxxopts::value<int>(),
      "N")("global-batch",
           "samples of a step (default: about 4 Mi tokens, at least one sample per accelerator)",
           cxxopts::value<std::string>(),
           "N")("train", "modules that are trained: projector,lora:language (default: all)",
                cxxopts::value<std::string>(), "MODULES")(
      "precision", "bf16, fp32, fp8 (default: bf16)", cxxopts::value<std::string>())(
      "thorough",
      "search all choices, not only the usual ones, with --effort 1: minutes instead of seconds")(
      "save", "also write the question as a scenario to this file", cxxopts::value<std::string>(),
      "FILE");
  add_search_options(args, kQuickEffort);
  add_cluster_options(args);
  args.add_profile();
  args.add_csv();
  if (args.parse(argc, argv)) return 0;
  args.check_outputs({"report", "json-out", "save"});
  check_saved_row(args);
  if (args.has("for")) parse_target(args.text("for"));
  const SignalCounter interrupts({SIGINT}, SignalCounter::Second::ends);
  const std::string file = args.has("save") ? args.text("save") : kUnsaved;
  AskOptions question = question_of(args);
  std::optional<LeastNodes> least;
  if (question.gpus.least) {
    if (args.csv())
      throw InputError("--format csv", "",
                       "has the rows of one number of nodes, but --gpus asks for it",
                       "use --format json, or state the number");
    least = find_least(args, question, file);
    question.node_counts = doubled(least->nodes, kDoublings);
    if (least->nodes == 0) question.node_counts = {least->most_tried()};
    question.gpus.nodes = question.node_counts.back();
  }
  const AskedScenario asked = asked_scenario(question, read_file, parent_of(file));
  if (args.has("save")) {
    write_file(file, asked.text);
    std::cerr << message_line(file + ": the question, as a scenario");
  }
  const Scenario scenario = scenario_of(args, asked, file);
  const HardwareProfile profile = load_profile(scenario, args.profile());
  const bool shown = !args.json() && !args.csv();
  if (shown) print_assumed(asked);
  SweepAnswer answered;
  if (least && least->nodes > 0) {
    answered = answer_of(search_shown(args, scenario, profile, "ask"), profile);
    QuestionWords words = answered.asked;
    words.cluster.clear();  // it has the most nodes
    const std::string target = add_target(args, answered);
    if (shown) std::cout << headline(words) << "\n" << least_text(*least, answered.found);
    if (shown && !target.empty()) std::cout << "\n" << paragraph(target);
  } else {
    answered = answer_sweep(args, scenario, profile, "ask");
  }
  answered.json.update(to_json(AskedQuestion{asked, least}));
  const VariantSweep& best = answered.found.best();
  return finish_sweep(args, answered, file,
                      [&] { save_row(args, best.scenario, answered.profile, best.sweep); });
}

}  // namespace polyphony::sim
