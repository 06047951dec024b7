#include "sim/frameworks/import.h"

#include <algorithm>
#include <cctype>

#include "shared/check/check.h"
#include "shared/error.h"
#include "shared/model/hf_config.h"
#include "shared/model/presets.h"
#include "shared/text/figure_text.h"
#include "sim/frameworks/setting_reader.h"
#include "sim/frameworks/translate.h"
#include "sim/question/file_cluster.h"
#include "sim/question/question.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Lower case, without what people leave out or add: "meta-llama/Llama-3.1-8B-Instruct" becomes
// "llama3.18b".
std::string bare(std::string text) {
  if (const std::size_t slash = text.find_last_of('/'); slash != std::string::npos)
    text = text.substr(slash + 1);
  // Recipes: "llama31_70b_pretrain_config"; versions of weights: "Mistral-7B-v0.1".
  for (const char* rest : {"_pretrain", "_sft", "_lora", "_peft", "_finetune", "-v0."})
    if (const std::size_t at = text.find(rest); at != std::string::npos) text.resize(at);
  std::string small;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '.')
      small += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* word : {"instruct", "chat", "base", "hf", "meta", "pretrain", "it"})
    if (small.size() > std::string(word).size() + 3 && small.ends_with(word))
      small.resize(small.size() - std::string(word).size());
  if (small.starts_with("metallama")) small.erase(0, 4);
  for (const auto& [joined, parted] :
       {std::pair{"llama31", "llama3.1"}, {"llama32", "llama3.2"}, {"qwen25", "qwen2.5"}})
    if (small.starts_with(joined)) small.replace(0, std::string(joined).size(), parted);
  return small;
}

// Returns the preset of a model as a framework names it, or null.
const ModelPreset* preset_of(const std::string& model_name) {
  const std::string wanted = bare(model_name);
  if (wanted.size() < 3) return nullptr;
  const auto named = [](const std::string& name) -> const ModelPreset* {
    for (const ModelPreset& preset : model_presets())
      if (preset.module.kind == ModuleKind::language && bare(preset.name) == name) return &preset;
    return nullptr;
  };
  // torchtitan's "llama3 8B" and "llama3_8b" are of version 3.1.
  if (model_name.find_first_of(" _") != std::string::npos && wanted.starts_with("llama3") &&
      !wanted.starts_with("llama3."))
    if (const ModelPreset* newer = named("llama3.1" + wanted.substr(6))) return newer;
  return named(wanted);
}

int number_of(const std::map<std::string, std::string>& launch, const char* key) {
  const auto found = launch.find(key);
  if (found == launch.end() || found->second.size() > 6) return 0;
  return std::max(0, std::atoi(found->second.c_str()));
}

// Blocks of the language module that the options or a model's name state; 0: neither does.
int layers_of(const FrameworkSettings& read, const ImportOptions& options, const LoadText& load) {
  for (const std::string& model : options.models) {
    if (const ModelPreset* preset = find_preset(model)) {
      if (preset->module.kind == ModuleKind::language) return preset->module.layers;
      continue;
    }
    const std::string path = model.ends_with(".json") ? model : model + "/config.json";
    try {
      return read_hf_config(load(path), path, ModuleKind::language).module.layers;
    } catch (const InputError&) {  // an encoder's; what is wrong is said where the model is read
    }
  }
  if (!options.models.empty()) return 0;
  std::string family, size;
  for (const Setting& setting : read.settings) {
    if (setting.key == "model.name") family = setting.value;
    if (setting.key == "model.flavor") size = setting.value;
  }
  if (!family.empty() && !size.empty())
    if (const ModelPreset* preset = preset_of(family + " " + size)) return preset->module.layers;
  for (const Setting& setting : read.settings)
    if (setting.key == "num_layers" || setting.key == "model.num_layers") return 0;  // it is stated
  for (const Setting& setting : read.settings)
    for (const char* key :
         {"model", "hf_model_id", "model_name_or_path", "config", "recipe", "tokenizer_model"})
      if (setting.key == key || setting.key.ends_with(std::string(".") + key))
        if (const ModelPreset* preset = preset_of(setting.value)) return preset->module.layers;
  return 0;
}

// The accelerators, from the options and from what launchers say.
GpuRequest gpus_of(const FrameworkSettings& read, const RunSettings& run,
                   const ImportOptions& options, ImportReport& report) {
  if (options.gpus) {
    if (options.gpus->least)
      throw InputError("--gpus", "", "must say how many accelerators the run has",
                       "--gpus 4x8xH100");
    const int all = options.gpus->nodes * options.gpus->per_node;
    if (run.ranks && *run.ranks != all)
      report.contradictions.push_back({"", "",
                                       "--gpus has " + count_text(all) +
                                           " accelerators, the run has " + count_text(*run.ranks)});
    const int stated = number_of(read.launch, "nodes") * number_of(read.launch, "per_node");
    if (!run.ranks && stated > 0 && stated != all)
      report.contradictions.push_back({"", "",
                                       "--gpus has " + count_text(all) +
                                           " accelerators, the launcher starts " +
                                           count_text(stated)});
    return *options.gpus;
  }
  int nodes = number_of(read.launch, "nodes"), per_node = number_of(read.launch, "per_node");
  if (per_node == 0 && number_of(read.launch, "tasks_per_node") > 1)
    per_node = number_of(read.launch, "tasks_per_node");
  int ranks = run.ranks.value_or(number_of(read.launch, "ranks"));
  if (run.nodes) nodes = *run.nodes;
  if (options.device.empty())
    throw InputError("--gpus", "", "is missing: no file names the accelerators",
                     "--gpus 4x8xH100, or --device H100 where the files say how many there are");
  const GpuRequest one = parse_gpus(options.device, "--device");
  if (ranks == 0 && per_node > 0) ranks = per_node * std::max(1, nodes);
  if (ranks == 0)
    throw InputError("--device", "", "is given, but no file says how many accelerators the run has",
                     "--gpus 4x8x" + options.device);
  if (per_node == 0) per_node = nodes > 0 && ranks % nodes == 0 ? ranks / nodes : 0;
  if (per_node == 0) return parse_gpus(std::to_string(ranks) + "x" + options.device, "--device");
  if (ranks % per_node != 0)
    throw InputError("--gpus", "",
                     "is needed: the run has " + count_text(ranks) + " ranks on nodes of " +
                         count_text(per_node),
                     "--gpus NODESx" + std::to_string(per_node) + "x" + options.device);
  return parse_gpus(
      std::to_string(ranks / per_node) + "x" + std::to_string(per_node) + "x" + options.device,
      "--device");
}

// The language module's dimensions, with a vocabulary where only its tokenizer is named.
OrderedJson with_vocabulary(const RunSettings& run, ImportReport& report) {
  OrderedJson language = *run.language;
  if (const ModelPreset* preset = preset_of(run.tokenizer); preset && !language.contains("vocab")) {
    language["vocab"] = preset->module.vocab;
    report.assumed.push_back(
        {"", "", "the vocabulary of " + preset->name + ", whose tokenizer is used"});
  }
  if (!language.contains("vocab")) {
    language["vocab"] = 128256;
    report.assumed.push_back({"", "",
                              "a vocabulary of 128,256 tokens: the tokenizer decides it (Llama "
                              "3's; --model states it)"});
  }
  return language;
}

// The scenario without layout: of `ask` where the model is a configuration or preset.
OrderedJson question_of(const RunSettings& run, const ImportOptions& options,
                        const GpuRequest& gpus, const LoadText& load, const std::string& folder,
                        ImportReport& report) {
  const std::int64_t sequence = options.sequence.value_or(run.sequence.value_or(0));
  const std::int64_t batch = options.global_batch.value_or(run.global_batch.value_or(0));
  if (options.sequence && run.sequence && *options.sequence != *run.sequence)
    report.contradictions.push_back({"", "",
                                     "--seq " + count_text(*options.sequence) +
                                         " replaces the settings' " + count_text(*run.sequence) +
                                         " tokens"});
  std::vector<std::string> models = options.models;
  if (models.empty() && !run.language)
    if (const ModelPreset* preset = preset_of(run.model_name)) {
      models = {preset->name};
      report.assumed.push_back(
          {"", "", "the model \"" + run.model_name + "\" is the preset " + preset->name});
    }
  const bool beside = models.empty() && run.language && !run.encoder.empty();
  if (beside) {
    // The settings' dimensions take the place of the second.
    models = {run.encoder, "llama-3.1-8b"};
    report.assumed.push_back({"", "", "the encoder is the preset " + run.encoder});
  }
  if (models.empty() && !run.language)
    throw InputError("--model", "",
                     run.model_name.empty() ? "is missing: no file states the model's dimensions"
                                            : "is missing: the files name the model \"" +
                                                  run.model_name + "\" and not its dimensions",
                     "the path of its config.json, or a preset such as llama-3.1-8b");
  if (!models.empty()) {
    AskOptions ask;
    ask.models = models;
    ask.gpus = gpus;
    if (sequence > 0) ask.sequence = sequence;
    ask.global_batch = batch;
    ask.images = options.images;
    ask.nic = options.nic;
    ask.price = options.price;
    ask.machines = options.machines;
    ask.oversubscription = options.oversubscription;
    ask.thorough = true;
    const AskedScenario asked = asked_scenario(ask, load, folder);
    for (const std::string& line : asked.assumed) report.assumed.push_back({"", "", line});
    OrderedJson scenario = OrderedJson::parse(asked.text);
    scenario.erase("search");
    if (beside) {
      OrderedJson language = with_vocabulary(run, report);
      language["from"] = scenario["model"]["language"]["from"];
      scenario["model"]["language"] = language;
    }
    if (run.language && !options.models.empty())
      report.contradictions.push_back(
          {"", "",
           "--model states the dimensions; those of the settings, " +
               run.language->value("layers", OrderedJson()).dump() + " blocks of width " +
               run.language->value("hidden", OrderedJson()).dump() + ", are not used"});
    return scenario;
  }
  if (sequence == 0)
    throw InputError("--seq", "", "is missing: no file states the length of a sequence",
                     "--seq 4096");
  const OrderedJson language = with_vocabulary(run, report);
  OrderedJson cluster = cluster_json(gpus, options.nic, options.price, folder);
  std::vector<std::string> assumed;
  add_machine_facts(options.machines, gpus, options.oversubscription, cluster, assumed);
  for (const std::string& line : assumed) report.assumed.push_back({"", "", line});
  return OrderedJson{{"polyphony", 1},
                     {"about", ""},
                     {"model", {{"language", language}}},
                     {"cluster", cluster},
                     {"data",
                      {{"source", "synthetic"},
                       {"text", {{"tokens", sequence}}},
                       {"sequence", sequence},
                       {"global_batch", batch}}},
                     {"training", OrderedJson::object()}};
}

// Blocks of a chain whose encoders stand in front of the first stage.
std::vector<int> chain_blocks(const Model& model, const RunSettings& run, ImportReport& report) {
  const int stages = run.grid.pp * run.grid.vpp;
  if (stages == 1) return {};
  int language = 0, encoders = 0;
  for (const Module& module : model.modules) {
    if (module.kind == ModuleKind::language) language = module.layers;
    if (module.kind == ModuleKind::vision || module.kind == ModuleKind::audio)
      encoders += module.layers;
  }
  std::vector<int> blocks = run.blocks;
  if (blocks.empty() && run.even) {
    if (language % stages != 0) {
      report.approximated.push_back({"", "",
                                     "the " + count_text(language) +
                                         " blocks do not divide evenly by " + count_text(stages) +
                                         " stages: they are split by their times"});
      return {};
    }
    blocks.assign(static_cast<std::size_t>(stages), language / stages);
  }
  if (blocks.empty()) {
    if (encoders > 0)
      report.approximated.push_back({"", "",
                                     "the encoder's blocks are split with the others by their "
                                     "times, not kept in the first stage"});
    return {};
  }
  blocks.front() += encoders;
  if (encoders > 0)
    report.assumed.push_back({"", "", "the encoder stands in the first pipeline stage"});
  return blocks;
}

std::string count_of(const char* what, std::size_t number) {
  return std::to_string(number) + " " + what;
}

void add_layout(const RunSettings& run, const Scenario& plain, OrderedJson& scenario,
                ImportReport& report) {
  const Model& model = plain.model;
  ModuleLayout grid = run.grid;
  const int ranks = plain.cluster.ranks();
  const int inner = grid.tp * grid.pp * grid.cp;
  if (inner < 1 || ranks % inner != 0)
    throw InputError("--gpus", "",
                     count_text(ranks) + " accelerators cannot be divided into " +
                         "tensor, pipeline and context parallelism of " + std::to_string(grid.tp) +
                         " x " + std::to_string(grid.pp) + " x " + std::to_string(grid.cp),
                     "state all accelerators of the run");
  const int dp = ranks / inner;
  const bool experts = std::any_of(model.modules.begin(), model.modules.end(),
                                   [](const Module& module) { return module.experts > 0; });
  if (!experts) {
    if (grid.ep > 1)
      report.contradictions.push_back(
          {"", "",
           "expert parallelism " + std::to_string(grid.ep) + ", but the model has no experts"});
    grid.ep = 1;
    grid.expert_tp = 0;
  }
  if (run.shard_groups > 1 && (dp * grid.cp) % run.shard_groups == 0)
    grid.shard_ranks = dp * grid.cp / run.shard_groups;
  if (dp * grid.cp == 1) {
    grid.shard = Shard::none;
    grid.shard_ranks = 0;
  }
  grid.blocks = chain_blocks(model, run, report);
  const bool encoders =
      std::any_of(model.modules.begin(), model.modules.end(), [](const Module& module) {
        return module.kind == ModuleKind::vision || module.kind == ModuleKind::audio;
      });
  const int recomputed = run.recomputed_per_stage * grid.pp;
  const bool part =
      recomputed > 0 && recomputed < model.modules[language_module(model).value].layers;
  if (part && grid.pp > 1)
    report.approximated.push_back({"", "",
                                   "as many blocks are recomputed, but the first ones of the "
                                   "model and not of each stage"});
  // Microbatches.
  const std::int64_t batch = plain.data.global_batch;
  const std::int64_t micro = run.microbatch.value_or(1);
  if (batch % (micro * dp) != 0) {
    const std::int64_t near = std::max<std::int64_t>(1, batch / (micro * dp)) * micro * dp;
    throw InputError("--gpus", "",
                     "a global batch of " + count_text(batch) + " samples cannot be divided by " +
                         count_text(micro) + " samples a microbatch x " + count_text(dp) +
                         " data-parallel ranks",
                     "is the number of accelerators right? --global-batch " + std::to_string(near) +
                         " would be possible");
  }
  OrderedJson layout{{"placement", "homogeneous"}};
  if (run.schedule != ScheduleKind::one_f_one_b) layout["schedule"] = name(run.schedule);
  layout["microbatches"] = batch / (micro * dp);
  if (!run.actions.empty()) layout["actions"] = run.actions;
  const bool alone = model.modules.size() == 1;
  layout[alone ? "language" : "all"] = json_value(grid);
  if (part) layout["language"]["recompute_blocks"] = {0, recomputed};
  if (encoders && grid.cp > 1 && run.copied_images) {
    for (const Module& module : model.modules)
      if (module.kind == ModuleKind::vision || module.kind == ModuleKind::audio)
        layout[module.name]["spread"] = "copied";
    report.assumed.push_back(
        {"", "", "every context-parallel rank encodes all images of its samples"});
  }
  scenario["layout"] = layout;
}

// Puts as many whole samples into a microbatch as its tokens allow and as divide a rank's batch.
void pack(RunSettings& run, const ImportOptions& options, int dp, ImportReport& report) {
  const std::int64_t sequence = options.sequence.value_or(run.sequence.value_or(0));
  if (sequence < 1 || *run.global_batch < 1 || *run.global_batch % dp != 0) return;
  const std::int64_t each = *run.global_batch / dp;
  constexpr std::int64_t kMost = 65536;
  std::int64_t samples =
      std::clamp<std::int64_t>(*run.microbatch_tokens / sequence, 1, std::min(each, kMost));
  while (each % samples != 0) --samples;
  run.microbatch = samples;
  report.approximated.push_back({"", "",
                                 "samples are packed into microbatches of up to " +
                                     count_text(*run.microbatch_tokens) + " tokens: here " +
                                     counted(samples, "sample", "samples") + " of " +
                                     count_text(sequence) + " tokens each, the longest"});
}

void add_training(const RunSettings& run, const Model& model, OrderedJson& scenario) {
  OrderedJson training{{"precision", run.precision.empty() ? "bf16" : run.precision}};
  if (!run.fp8.empty()) training["fp8"] = run.fp8;
  training["software"] = run.stack;
  training.update(run.training);
  scenario["training"] = training;
  for (const Module& module : model.modules)
    for (const auto& [kind, how] : run.train) {
      if (kind != name(module.kind)) continue;
      OrderedJson& entry = scenario["model"][module.name];
      entry["train"] = how;
      if (how == "lora") entry["lora_rank"] = run.lora_rank;
    }
}

}  // namespace

RunSettings run_settings(const FrameworkSettings& read, ImportReport& report, int layers) {
  switch (read.framework) {
    case Framework::megatron_lm:
    case Framework::megatron_bridge:
    case Framework::ms_swift: {
      SettingReader settings(megatron_names(read), report, read.printed);
      RunSettings run = read_megatron(settings, read.framework, layers);
      settings.finish(megatron_known(read.framework));
      return run;
    }
    case Framework::torchtitan: {
      SettingReader settings(read.settings, report, read.printed);
      RunSettings run = read_torchtitan(settings, layers, read.schedule);
      settings.finish(torchtitan_known());
      return run;
    }
    case Framework::verl:
    case Framework::nemo_rl: {
      SettingReader settings(megatron_names(read), report, read.printed);
      RunSettings run = read_policy(settings, read.framework, layers);
      std::vector<std::vector<KnownSetting>> known = policy_known();
      known.push_back(megatron_known(read.framework).front());
      settings.finish(known);
      return run;
    }
    case Framework::llama_factory:
      if (auto named = megatron_names_of_factory(read)) {
        SettingReader settings(std::move(*named), report, read.printed);
        RunSettings run = read_megatron(settings, read.framework, layers);
        run.microbatches =
            settings.count("gradient_accumulation_steps", "microbatches").value_or(1);
        std::vector<std::vector<KnownSetting>> known = megatron_known(read.framework);
        known.push_back(trainer_known().front());
        settings.finish(known);
        return run;
      }
      [[fallthrough]];
    case Framework::hf_trainer: {
      SettingReader settings(read.settings, report, read.printed);
      RunSettings run = read_trainer(settings, read.framework);
      settings.finish(trainer_known());
      return run;
    }
  }
  return {};
}

Imported import_settings(const FrameworkSettings& read, const ImportOptions& options,
                         const LoadText& load, const std::string& folder) {
  Imported imported;
  imported.framework = read.framework;
  ImportReport& report = imported.report;
  for (const std::string& note : read.notes) report.assumed.push_back({"", "", note});
  for (const std::string& file : read.missing)
    report.unknown.push_back({file, "", "is named, but not there: give it beside the other files"});
  for (const std::string& file : read.unused)
    report.unknown.push_back({file, "", "is given, but no other file names it"});
  RunSettings run = run_settings(read, report, layers_of(read, options, load));
  const GpuRequest gpus = gpus_of(read, run, options, report);
  check_gpus(options.machines, gpus, options.gpus ? "--gpus" : "--device");
  // A batch that is not stated follows from microbatches.
  const int inner = run.grid.tp * run.grid.pp * run.grid.cp;
  const int dp = std::max(1, gpus.nodes * gpus.per_node / std::max(1, inner));
  if (!run.global_batch && run.microbatches)
    run.global_batch = run.microbatch.value_or(1) * *run.microbatches * dp;
  if (!run.global_batch) {
    run.global_batch = run.microbatch.value_or(1) * dp;
    report.assumed.push_back({"", "", "one microbatch a step: no setting states the global batch"});
  }
  if (!run.microbatch && run.microbatches)
    run.microbatch = std::max<std::int64_t>(1, *run.global_batch / (*run.microbatches * dp));
  if (!run.microbatch && run.microbatch_tokens) pack(run, options, dp, report);
  const std::string file = folder.empty() ? "scenario" : folder + "/scenario";
  OrderedJson scenario = question_of(run, options, gpus, load, folder, report);
  const Scenario plain = read_scenario(scenario.dump(), file, load, {});
  add_training(run, plain.model, scenario);
  add_layout(run, plain, scenario, report);
  std::string about = std::string("Imported from ") + name(read.framework) + ".";
  if (!report.approximated.empty() || !report.not_modeled.empty())
    about +=
        " Not as in the run: " + count_of("settings approximated, ", report.approximated.size()) +
        count_of("not modeled (notes).", report.not_modeled.size());
  scenario["about"] = about;
  OrderedJson notes = OrderedJson::array();
  for (const auto* lines : {&report.approximated, &report.not_modeled})
    for (const ImportReport::Line& line : *lines)
      if (notes.size() < 16)
        notes.push_back((line.setting.empty() ? "" : line.setting + ": ") + line.text);
  if (!notes.empty()) scenario["notes"] = notes;
  imported.stack = run.stack;
  imported.text = scenario.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  imported.scenario = read_scenario(imported.text, file, load, {});
  if (const auto refused = check_layout(imported.scenario, *imported.scenario.layout))
    imported.illegal = refused->reason;
  return imported;
}

}  // namespace polyphony::sim
