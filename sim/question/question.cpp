#include "sim/question/question.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "shared/chunk/parameters.h"
#include "shared/error.h"
#include "shared/model/hf_config.h"
#include "shared/model/presets.h"
#include "shared/text/figure_text.h"
#include "shared/text/strict_json.h"
#include "sim/question/file_cluster.h"
#include "sim/question/stack_limits.h"
#include "sim/question/usual_choices.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

// What is assumed when a question leaves it open: a sequence of 8,192 tokens, images that fill a
// quarter of it, and 4 Mi tokens a step, as published runs of 7 to 70 billion parameters have.
constexpr std::int64_t kSequence = 8192, kTokensPerStep = std::int64_t{4} << 20;
constexpr int kShareOfImages = 4;

struct AskedPart {
  ModuleKind kind = ModuleKind::language;
  std::string path;    // of its config.json; empty: a preset
  std::string preset;  // its name
  Module module;
  int merge = 0;  // that its configuration states
};

// The modules of a question, in one config.json or several.
struct AskedParts {
  std::vector<AskedPart> all;
  std::string whole;  // the composite configuration that all come from; empty: none
  int deep = 0;       // blocks of its encoder whose rows enter inner blocks (DeepStack)
  const AskedPart* find(ModuleKind kind) const {
    for (const AskedPart& part : all)
      if (part.kind == kind) return &part;
    return nullptr;
  }
};

std::string count(std::int64_t value) { return count_text(value); }

AskedPart read_part(ModuleKind kind, const std::string& path, const std::string& text) {
  const HfModule read = read_hf_config(text, path, kind);
  return {kind, path, "", read.module, read.merge};
}

// Adds what one --model names.
void add_model(const std::string& word, const LoadText& load, AskedParts& parts) {
  if (const ModelPreset* preset = find_preset(word)) {
    parts.all.push_back({preset->module.kind, "", word, preset->module, 0});
    return;
  }
  const bool is_file = word.ends_with(".json");
  if (!is_file && word.find('/') == std::string::npos && !fs::exists(word)) {
    std::vector<std::string> names;
    for (const ModelPreset& preset : model_presets()) names.push_back(preset.name);
    throw InputError("--model", "", "\"" + word + "\" is neither a preset nor a file",
                     suggest(word, names) + ", or the path of a Hugging Face config.json");
  }
  const std::string path = is_file ? word : (fs::path(word) / "config.json").string();
  const std::string text = load(path);
  const JsonValue config = hf_root(text, path);
  if (config.has("polyphony") && !config.has("model_type"))
    config.refuse("is not a Hugging Face config.json",
                  "polyphony sweep " + path + " answers for a scenario");
  const auto has = [&](const char* part) {
    return config.has(part) && config.at(part).is_object();
  };
  if (has("vision_config") || has("audio_config")) {
    if (!parts.whole.empty() || !parts.all.empty())
      config.refuse("is a composite model, and another model is given beside it",
                    "give one composite model, or one config.json for each module");
    parts.whole = path;
    if (const char* deep = "deepstack_visual_indexes";
        has("vision_config") && config.at("vision_config").has(deep) &&
        has_deep_rows(hf_model_type(text, path, ModuleKind::projector)) &&
        config.at("vision_config").at(deep).is_list())
      parts.deep = static_cast<int>(config.at("vision_config").at(deep).size());
    if (has("vision_config")) parts.all.push_back(read_part(ModuleKind::vision, path, text));
    if (has("audio_config")) parts.all.push_back(read_part(ModuleKind::audio, path, text));
    parts.all.push_back(read_part(ModuleKind::language, path, text));
    return;
  }
  const std::string type = hf_model_type(text, path, ModuleKind::language);
  std::vector<std::string> known;
  for (const ModuleKind kind : {ModuleKind::language, ModuleKind::vision, ModuleKind::audio}) {
    const std::vector<std::string>& types = hf_types(kind);
    known.insert(known.end(), types.begin(), types.end());
    if (std::find(types.begin(), types.end(), type) == types.end()) continue;
    parts.all.push_back(read_part(kind, path, text));
    return;
  }
  config.refuse_at("model_type", "model type \"" + type + "\" is not known", suggest(type, known));
}

AskedParts read_parts(const AskOptions& question, const LoadText& load) {
  if (question.models.empty())
    throw InputError("--model", "", "is missing",
                     "the path of a config.json, or a preset such as llama-3.1-8b; several for an "
                     "encoder and a language model");
  AskedParts parts;
  for (const std::string& word : question.models) {
    if (!parts.whole.empty())
      throw InputError("--model", "", word + " is given beside the composite " + parts.whole,
                       "give one composite model, or one config.json for each module");
    add_model(word, load, parts);
  }
  for (const ModuleKind kind :
       {ModuleKind::vision, ModuleKind::audio, ModuleKind::language, ModuleKind::diffusion})
    if (std::count_if(parts.all.begin(), parts.all.end(),
                      [&](const AskedPart& part) { return part.kind == kind; }) > 1)
      throw InputError("--model", "", std::string("names two ") + name(kind) + " models",
                       "a question has one of each kind");
  if (!parts.find(ModuleKind::language))
    throw InputError("--model", "", "names no language model", "add one: --model llama-3.1-8b");
  return parts;
}

// Images of a sample: their number, and how many patches a side has.
struct Images {
  int per_sample = 0, side = 0, merge = 1;
  std::int64_t rows() const { return std::int64_t{per_sample} * (side / merge) * (side / merge); }
};

[[noreturn]] void refuse_images(const std::string& text, const std::string& what,
                                const std::string& fix) {
  throw InputError("--images", "", "\"" + text + "\" " + what, fix);
}

Images read_images(const AskOptions& question, const AskedParts& parts, std::int64_t sequence,
                   std::vector<std::string>& assumed) {
  constexpr const char* kForms =
      "8 images: 8; of 1,024 patches each: 8x1024; of 448 pixels: "
      "8x448px";
  const AskedPart& vision = *parts.find(ModuleKind::vision);
  const Module& module = vision.module;
  Images images{.per_sample = 0, .side = module.image_size / module.patch};
  const std::string& text = question.images;
  const auto cut = text.find_first_of("xX*");
  if (cut != std::string::npos) {
    std::string size = text.substr(cut + 1);
    const bool pixels = size.ends_with("px");
    if (pixels) size.resize(size.size() - 2);
    const std::int64_t value = parse_count(size, "--images");
    if (pixels) {
      images.side = static_cast<int>(value / module.patch);
      if (value % module.patch != 0)
        refuse_images(
            text, "is not a whole number of patches of " + std::to_string(module.patch) + " pixels",
            std::to_string(std::max(1, images.side) * module.patch) + "px would be");
    } else {
      images.side = static_cast<int>(std::lround(std::sqrt(static_cast<double>(value))));
      if (std::int64_t{images.side} * images.side != value)
        refuse_images(text, "is not a square: images are squares of patches",
                      count(std::int64_t{images.side} * images.side) + " patches would be");
    }
  }
  images.merge = vision.merge > 0 ? vision.merge : question.merge;
  if (images.merge == 0 && !parts.whole.empty()) images.merge = 1;  // as LLaVA
  if (images.merge == 0) {  // of parts that were never one model
    images.merge = images.side % 2 == 0 ? 2 : 1;
    assumed.push_back(images.merge == 2 ? "the projector joins 2x2 patches into a token (--merge)"
                                        : "the projector makes a token of each patch (--merge)");
  }
  if (images.side % images.merge != 0) {
    const int near = std::max(1, images.side / images.merge) * images.merge;
    refuse_images(text.empty() ? std::to_string(module.image_size) + " pixels" : text,
                  "has " + std::to_string(images.side) +
                      " patches a side, of which the projector "
                      "joins " +
                      std::to_string(images.merge),
                  std::to_string(near * near) + " patches would be possible, or another --merge");
  }
  const std::int64_t tokens =
      std::int64_t{images.side / images.merge} * (images.side / images.merge);
  if (text.empty()) {
    images.per_sample =
        static_cast<int>(std::max<std::int64_t>(1, sequence / kShareOfImages / tokens));
    assumed.push_back(count(images.per_sample) + " images of " +
                      count(std::int64_t{images.side} * images.side) +
                      " patches a sample, a quarter of its tokens (--images)");
  } else {
    const std::string number = text.substr(0, cut);
    const std::int64_t value = parse_count(number, "--images");
    constexpr std::int64_t kMostImages = 1 << 16;
    if (value > kMostImages) refuse_images(text, "are too many images", kForms);
    images.per_sample = static_cast<int>(value);
  }
  return images;
}

// Adds "train" to the modules, of which those that `train` names are trained.
void set_trained(const std::string& train, const std::vector<std::string>& modules,
                 OrderedJson& model) {
  if (train.empty() || train == "all") return;
  std::vector<std::string> frozen = modules;
  std::size_t begin = 0;
  while (begin <= train.size()) {
    const std::size_t end = std::min(train.find(',', begin), train.size());
    std::string word = train.substr(begin, end - begin);
    begin = end + 1;
    const bool lora = word.starts_with("lora:");
    if (lora) word.erase(0, 5);
    if (std::find(modules.begin(), modules.end(), word) == modules.end())
      throw InputError("--train", "", "there is no module \"" + word + "\"",
                       suggest(word, modules) + "; lora:language trains low-rank updates alone");
    std::erase(frozen, word);
    if (lora) {
      constexpr int kRank = 16;  // peft's examples and LLaMA-Factory's default are 8 to 16
      model[word]["train"] = "lora";
      model[word]["lora_rank"] = kRank;
    }
  }
  for (const std::string& module : frozen) model[module]["train"] = "frozen";
}

std::string relative(const std::string& path, const std::string& folder) {
  if (folder.empty() || fs::path(path).is_absolute()) return path;
  return fs::relative(path, folder).string();
}

OrderedJson model_json(const AskedParts& parts, const AskOptions& question, const Images& images,
                       const std::string& folder, std::vector<std::string>& modules) {
  OrderedJson model = OrderedJson::object();
  std::vector<std::string> sources;
  for (const AskedPart& part : parts.all) {
    const std::string module = name(part.kind);
    modules.push_back(module);
    if (parts.whole.empty())
      model[module] = part.path.empty() ? OrderedJson{{"preset", part.preset}}
                                        : OrderedJson{{"hf", relative(part.path, folder)}};
    if (part.kind == ModuleKind::vision &&
        images.side * part.module.patch != part.module.image_size)
      model[module]["image_size"] = images.side * part.module.patch;
    if (part.kind != ModuleKind::vision && part.kind != ModuleKind::audio) continue;
    const std::string projector =
        part.kind == ModuleKind::audio && (sources.size() > 0 || !parts.whole.empty())
            ? "audio_projector"
            : "projector";
    modules.push_back(projector);
    sources.push_back(projector);
    if (!parts.whole.empty()) continue;
    model[projector] = {{"kind", "projector"}, {"from", module}};
    if (part.kind == ModuleKind::vision && part.merge == 0)
      model[projector]["merge"] = std::to_string(images.merge) + "x" + std::to_string(images.merge);
  }
  if (parts.whole.empty()) {
    if (sources.size() == 1) model["language"]["from"] = sources.front();
    if (sources.size() > 1) model["language"]["from"] = sources;
  } else {
    OrderedJson whole{{"hf", relative(parts.whole, folder)}};
    whole.update(model);
    model = whole;
  }
  set_trained(question.train, modules, model);
  for (int i = 1; i <= parts.deep; ++i)  // named as with_composite_shapes() names them
    if (model.contains("projector") && model["projector"].contains("train"))
      model["deep_projector_" + std::to_string(i)]["train"] = model["projector"]["train"];
  return model;
}

// Floating-point operations of a step follow parameters times rows: 2 forward, 2 backward to the
// inputs, 2 to the weights (Kaplan et al., arXiv 2001.08361, section 2.1). A frozen encoder has the
// first alone, a frozen language module the first two.
double work_of(const AskedPart& part, const std::string& train, std::int64_t rows) {
  const bool frozen =
      !train.empty() && train != "all" && train.find(name(part.kind)) == std::string::npos;
  const double passes = !frozen ? 3 : part.kind == ModuleKind::language ? 2 : 1;
  return passes * static_cast<double>(parameter_count(part.module)) * static_cast<double>(rows);
}

ChoiceOf choice_of(const AskedParts& parts, const AskOptions& question, const Images& images,
                   std::int64_t sequence) {
  ChoiceOf of{.sequence = sequence,
              .nodes = question.gpus.nodes,
              .per_node = question.gpus.per_node,
              .encoder = {},
              .encoder_share = 0};
  const AskedPart *vision = parts.find(ModuleKind::vision), *audio = parts.find(ModuleKind::audio);
  if ((vision == nullptr) == (audio == nullptr)) return of;
  const AskedPart& encoder = vision ? *vision : *audio;
  const std::int64_t rows =
      vision ? std::int64_t{images.per_sample} * images.side * images.side
             : std::int64_t{question.clips.value_or(1)} * audio->module.audio_tokens;
  const double own = work_of(encoder, question.train, rows),
               other = work_of(*parts.find(ModuleKind::language), question.train, sequence);
  of.encoder = name(encoder.kind);
  of.encoder_share = own / (own + other);
  return of;
}

}  // namespace

nlohmann::ordered_json cluster_json(const GpuRequest& gpus, const std::string& nic,
                                    const std::string& price, const std::string& folder) {
  OrderedJson cluster;
  if (!gpus.node.empty())
    cluster["node"] = gpus.node;
  else
    cluster["node"] = {
        {"device", gpus.device.ends_with(".json") ? relative(gpus.device, folder) : gpus.device},
        {"ranks", gpus.per_node}};
  cluster["nodes"] = gpus.nodes;
  if (!nic.empty()) cluster["nic"] = nic;
  if (!price.empty()) cluster["price"] = price;
  return cluster;
}

std::int64_t parse_count(const std::string& text, const std::string& option) {
  double value = 0;
  std::size_t used = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  if (unit == "k" || unit == "K") value *= 1024;
  if (unit == "M") value *= 1024 * 1024;
  const bool known = unit.empty() || unit == "k" || unit == "K" || unit == "M";
  constexpr double kMost = 1e12;
  if (used == 0 || !known || !(value >= 1) || value > kMost || value != std::floor(value))
    throw InputError(option, "", "\"" + text + "\" is not a whole number above 0",
                     "8192, 8k (8,192), or 1M (1,048,576)");
  return static_cast<std::int64_t>(value);
}

AskedScenario asked_scenario(const AskOptions& question, const LoadText& load,
                             const std::string& folder) {
  AskedScenario asked;
  asked.assumed = question.gpus.assumed;
  const AskedParts parts = read_parts(question, load);
  const AskedPart* vision = parts.find(ModuleKind::vision);
  const AskedPart* audio = parts.find(ModuleKind::audio);
  const std::int64_t sequence = question.sequence.value_or(kSequence);
  if (!question.sequence)
    asked.assumed.push_back("sequences of " + count(sequence) + " tokens (--seq)");
  if (!vision && !question.images.empty())
    throw InputError("--images", "", "is given, but no model reads images",
                     "add an encoder: --model siglip-so400m-14");
  if (!audio && question.clips)
    throw InputError("--audio", "", "is given, but no model reads audio",
                     "add an encoder: --model whisper-large-v3");
  Images images;
  if (vision) images = read_images(question, parts, sequence, asked.assumed);
  std::int64_t rows = images.rows();
  const int clips = audio ? question.clips.value_or(1) : 0;
  if (audio && !question.clips) asked.assumed.push_back("1 clip of audio a sample (--audio)");
  if (audio) rows += std::int64_t{clips} * audio->module.audio_tokens;
  if (rows >= sequence)
    throw InputError("--seq", "",
                     "must leave room for text: images and audio of a sample are " + count(rows) +
                         " tokens, the sequence has " + count(sequence),
                     "fewer or smaller --images, or a longer --seq");
  std::int64_t batch = question.global_batch.value_or(0);
  if (batch == 0) {
    batch = static_cast<std::int64_t>(std::bit_ceil(
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, kTokensPerStep / sequence))));
    // If the number of nodes is what is asked for, all have the same batch.
    const std::int64_t ranks = std::int64_t{question.gpus.nodes} * question.gpus.per_node;
    while (!question.gpus.least && batch < ranks) batch *= 2;
    asked.assumed.push_back("a global batch of " + count(batch) + " samples, " +
                            count(batch * sequence) + " tokens (--global-batch)");
  }
  std::vector<std::string> modules;
  OrderedJson scenario{{"polyphony", 1}, {"about", ""}};
  scenario["model"] = model_json(parts, question, images, folder, modules);
  scenario["cluster"] = cluster_json(question.gpus, question.nic, question.price, folder);
  add_machine_facts(question.machines, question.gpus, question.oversubscription,
                    scenario["cluster"], asked.assumed);
  OrderedJson data{{"source", "synthetic"}};
  if (vision) data["images"] = {{"per_sample", images.per_sample}};
  if (audio) data["audio"] = {{"per_sample", clips}};
  data["text"] = {{"tokens", sequence - rows}};
  data["sequence"] = sequence;
  data["global_batch"] = batch;
  scenario["data"] = data;
  OrderedJson training{{"precision", question.precision.empty() ? "bf16" : question.precision}};
  OrderedJson search = OrderedJson::object();
  // An encoder's sequences are its images: they are not cut.
  for (const char* encoder : {"vision", "audio"})
    if (std::find(modules.begin(), modules.end(), encoder) != modules.end())
      search[encoder]["cp"] = 1;
  if (!question.stack.empty()) {
    training["software"] = question.stack;
    if (const StackLimits* limits = find_limits(question.stack)) {
      std::vector<std::string> searched = modules;
      std::erase_if(searched, [](const std::string& m) { return m.ends_with("projector"); });
      apply_limits(*limits, searched, search);
      asked.assumed.push_back("only layouts that " + question.stack + " can run (" +
                              limits->source + ")");
    }
  }
  if (!question.thorough) {
    if (!search.contains("schedule")) search["schedule"] = {"1f1b", "interleaved"};
    add_usual_choices(choice_of(parts, question, images, sequence), search);
    asked.assumed.push_back(usual_choices_text());
  }
  scenario["search"] = search;
  if (!question.node_counts.empty()) scenario["goal"] = {{"nodes", question.node_counts}};
  scenario["training"] = training;
  std::string about = "Written by polyphony ask.";
  if (!asked.assumed.empty()) about += " Assumed: ";
  for (const std::string& line : asked.assumed)
    about += line + (&line == &asked.assumed.back() ? "." : "; ");
  scenario["about"] = about;
  asked.text = scenario.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  return asked;
}

}  // namespace polyphony::sim
