#include "shared/export/export_run.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "shared/checkpoint/checkpoint_reader.h"
#include "shared/checkpoint/tensor_size.h"
#include "shared/datasets/chat_template.h"
#include "shared/error.h"
#include "shared/export/export_config_json.h"
#include "shared/export/llava_json.h"
#include "shared/export/tensor_files_json.h"
#include "shared/files/files.h"
#include "shared/files/run_paths.h"
#include "shared/files/whole.h"
#include "shared/form/module_fields.h"
#include "shared/kernels/lora.h"
#include "shared/model/hf_config.h"
#include "shared/text/json_form.h"
#include "shared/weights/number_bytes.h"
#include "shared/weights/pretrained.h"
#include "shared/weights/weight_scales.h"

namespace polyphony {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChatTemplate = "chat_template.jinja";
constexpr std::array kCarried = {"tokenizer.json",
                                 "tokenizer_config.json",
                                 "tokenizer.model",
                                 "special_tokens_map.json",
                                 "added_tokens.json",
                                 "vocab.json",
                                 "merges.txt",
                                 "vocab.txt",
                                 kChatTemplate,
                                 "chat_template.json",
                                 "generation_config.json",
                                 "preprocessor_config.json",
                                 "processor_config.json",
                                 "video_preprocessor_config.json"};

// Modules that become one folder.
struct Group {
  std::vector<std::size_t> modules;
  std::string folder;  // below the export's; empty: the export's own
  bool adapter = false;
};

bool is_lora(const Module& module) { return module.trainable == Trainable::lora; }

std::vector<std::byte> bytes_for(std::int64_t count, const std::string& format) {
  return std::vector<std::byte>(static_cast<std::size_t>(count * element_bytes(format)));
}

// The numbers of one parameter, all of it.
struct Values {
  std::string format;
  std::vector<std::byte> bytes;
  double at(std::int64_t i) const {
    return with_format(format, [&](auto f) {
      using Format = decltype(f);
      return read_number<Format>(bytes.data() +
                                 static_cast<std::size_t>(i) * sizeof(typename Format::Bits));
    });
  }
};

class Export {
 public:
  Export(const Scenario& scenario, const ExportOptions& options, const Manifest& manifest,
         const std::string& path, std::string out)
      : scenario_(scenario),
        options_(options),
        manifest_(manifest),
        reader_(path, manifest),
        out_(std::move(out)),
        sources_(scenario.weights) {
    sources_.resize(scenario.model.modules.size());
    for (std::size_t m = 0; m < sources_.size(); ++m)  // LLaVA's projector is this one
      if (module(m).kind == ModuleKind::projector && module(m).projector_hidden > 0 &&
          sources_[m].type.empty())
        sources_[m].type = "llava";
    result_.step = manifest.step;
    result_.format = options.format.empty() ? manifest.format : options.format;
  }

  Exported run() {
    const std::vector<Group> groups = make_groups();
    if (groups.empty())
      throw InputError(options_.run, "",
                       "has no module of a published model to export: " + joined(result_.left_out),
                       "train modules with the key \"weights\" or \"hf\" in the scenario");
    for (const Group& group : groups)
      for (const std::size_t m : group.modules)
        for (const Parameter& parameter : parameters(module(m))) all_ += parameter.count();
    for (const Group& group : groups)
      for (const std::size_t m : group.modules) check_config(m);
    for (const Group& group : groups) write(group);
    return std::move(result_);
  }

 private:
  const Module& module(std::size_t m) const { return scenario_.model.modules[m]; }
  const ModuleWeights& source(std::size_t m) const { return sources_[m]; }
  // Whether the module's configuration is a part of that of a composite model.
  bool is_part(std::size_t m) const {
    return !source(m).config.empty() && has_part(read_file(source(m).config), module(m).kind);
  }

  // All modules, as one LLaVA.
  std::vector<Group> llava_group() {
    llava_ = find_llava(scenario_, sources_);
    image_token_ = image_token_id(source(llava_.language), options_.image_token);
    for (std::size_t m = 0; m < sources_.size(); ++m)
      if (is_lora(module(m)) && !options_.merge)
        throw InputError(options_.run, "", module(m).name + " was trained by LoRA",
                         "write whole weights with --merge");
    return {{{llava_.vision, llava_.projector, llava_.language}, "", false}};
  }

  // Modules of one composite model become one folder, unless one of them is an adapter.
  std::vector<Group> make_groups() {
    if (options_.llava) return llava_group();
    std::map<std::string, Group> by_config;
    std::vector<std::string> order;
    for (std::size_t m = 0; m < scenario_.model.modules.size(); ++m) {
      const std::string& name = module(m).name;
      if (source(m).type.empty()) {
        result_.left_out.push_back(name + " (of no published model)");
        continue;
      }
      if (find_tensor_family(module(m).kind, source(m).type) == nullptr) {
        result_.left_out.push_back(name + " (tensors of the model type \"" + source(m).type +
                                   "\" have no table yet)");
        continue;
      }
      const bool adapter = is_lora(module(m)) && !options_.merge;
      if (adapter && is_part(m))
        throw InputError(source(m).config, "",
                         "is of a composite model, in which PEFT would not find the layers of an "
                         "adapter for " +
                             name + " alone",
                         "write whole weights with --merge");
      const bool alone = adapter || (source(m).folder.empty() && !is_whole_type(source(m).type));
      std::string key = alone ? "/" + name : source(m).config;
      for (const std::size_t other : by_config[key].modules)  // the same model a second time
        if (module(other).kind == module(m).kind) key += "/" + name;
      if (by_config[key].modules.empty()) order.push_back(key);
      by_config[key].modules.push_back(m);
      by_config[key].adapter = adapter;
    }
    std::vector<Group> groups;
    for (const std::string& key : order) groups.push_back(by_config[key]);
    for (Group& group : groups)
      if (groups.size() > 1 || !result_.left_out.empty())
        for (const std::size_t m : group.modules)
          group.folder += (group.folder.empty() ? "" : "_") + module(m).name;
    return groups;
  }
  // Composite models whose tensor names do not depend on a folder's.
  static bool is_whole_type(const std::string& type) {
    return type.starts_with("qwen2_vl") || type.starts_with("qwen2_5_vl");
  }

  void write(const Group& group) {
    const std::string folder = group.folder.empty() ? out_ : out_ + "/" + group.folder;
    fs::create_directories(folder);
    ExportedModel made;
    made.folder = group.folder.empty() ? options_.out : options_.out + "/" + group.folder;
    made.adapter = group.adapter;
    plan_.clear();
    targets_.clear();
    for (const std::size_t m : group.modules) {
      made.modules.push_back(module(m).name);
      plan(m, group);
    }
    std::vector<TensorToWrite> tensors;
    for (const Planned& planned : plan_) tensors.push_back(planned.tensor);
    write_tensor_files(folder, group.adapter ? "adapter_model" : "model", tensors,
                       [&](std::size_t i) { return data(plan_[i]); });
    made.tensors = static_cast<std::int64_t>(tensors.size());
    for (const TensorToWrite& tensor : tensors) made.parameters += element_count(tensor.shape);
    write_config(group, folder);
    made.copied = carry(group, folder);
    result_.models.push_back(std::move(made));
  }

  // A tensor of the file, and the parameter that it is a part of.
  struct Planned {
    TensorToWrite tensor;
    std::size_t module = 0;
    Parameter parameter;
    std::shared_ptr<const Arrangement> arrangement;
    std::string source;  // name of the tensor in the arrangement
    // A tensor of the folder that training began with, which no parameter is read from; else null.
    std::shared_ptr<const TensorFolder> folder = nullptr;
  };

  // Throws InputError if the weights that an adapter is added to are no longer the published ones:
  // an earlier run or phase has trained them.
  void check_base(std::size_t m) {
    if (source(m).folder.empty()) return;
    const PretrainedModule published(module(m), source(m).type, folder_of(m));
    for (const Parameter& parameter : parameters(module(m))) {
      if (!is_published(parameter)) continue;
      std::vector<std::byte> begun = bytes_for(parameter.count(), manifest_.format), kept = begun;
      published.read(parameter, {}, manifest_.format, begun.data());
      reader_.read(parameter, "", {{}, {0, parameter.count()}}, manifest_.format, kept.data());
      if (begun != kept)
        throw InputError(options_.run, "",
                         parameter.name + " differs from " + source(m).folder +
                             ", to which an adapter of " + module(m).name + " would be added",
                         "write whole weights with --merge");
    }
  }

  void plan(std::size_t m, const Group& group) {
    const bool adapter = group.adapter;
    if (adapter) check_base(m);
    const TensorNames names = names_of(m, group.modules.size() == 1 && is_part(m));
    const std::vector<Parameter> all = parameters(module(m));
    for (const Parameter& parameter : all) {
      if (adapter == is_published(parameter)) continue;
      if (adapter)
        plan_pair(m, names, all, parameter);
      else
        add(m, parameter, names.of(parameter), [](const std::string& name) { return name; });
    }
    if (!adapter && !module(m).final_norm && !source(m).folder.empty()) plan_rest(m, names);
  }

  // A module without a final norm ends before the published model does: the blocks after it, and
  // their norm, stay as they are.
  void plan_rest(std::size_t m, const TensorNames& names) {
    const std::string begun = TensorNames(module(m), names.family(), *folder_of(m)).root();
    const std::string blocks = blocks_of(names.family());
    std::set<std::string> planned;
    for (const Planned& one : plan_) planned.insert(one.tensor.name);
    const std::shared_ptr<const TensorFolder> folder = folder_of(m);
    for (const auto& [name, stored] : folder->tensors()) {
      if (!name.starts_with(begun)) continue;
      const std::string below = name.substr(begun.size());
      const bool rest =
          below.starts_with("post_layernorm.") || (!blocks.empty() && below.starts_with(blocks));
      if (!rest || planned.contains(names.root() + below)) continue;
      if (is_fp8(stored.format))
        throw InputError(stored.file, "/" + name,
                         "is in FP8 and in no block of " + module(m).name +
                             ": only what a run trains is exported from FP8",
                         "begin with weights that are not quantized");
      if (!is_weight_format(stored.format) || describes_fp8(*folder, name)) continue;
      Arrangement arrangement;
      arrangement.parts.push_back(whole_tensor(name, stored.shape));
      plan_.push_back({{names.root() + below, result_.format, stored.shape},
                       m,
                       {},
                       std::make_shared<const Arrangement>(arrangement),
                       name,
                       folder});
    }
  }

  // The pair's A is the same for all tensors that the weight is made of; B has their rows.
  void plan_pair(std::size_t m, const TensorNames& names, const std::vector<Parameter>& all,
                 const Parameter& pair) {
    const std::string stem = pair.name.substr(0, pair.name.size() - 7);  // without ".lora_a"
    const auto weight = std::find_if(all.begin(), all.end(), [&](const Parameter& parameter) {
      return parameter.name == stem + ".weight";
    });
    POLYPHONY_CHECK(weight != all.end(), pair.name << " has no weight");
    const bool is_a = pair.name.ends_with(".lora_a");
    Parameter shaped = *weight;
    shaped.name = weight->name;
    shaped.shape = pair.shape;
    Arrangement arrangement;
    if (is_a) {
      for (const TensorPart& part : names.of(*weight).parts)
        arrangement.parts.push_back(whole_tensor(part.tensor, pair.shape));
    } else {
      arrangement = names.of(shaped);
    }
    const auto renamed = [&](const std::string& name) {
      const std::string layer = name.substr(0, name.size() - std::string(".weight").size());
      targets_.insert(layer.substr(layer.rfind('.') + 1));
      return "base_model.model." + layer + (is_a ? ".lora_A.weight" : ".lora_B.weight");
    };
    add(m, pair, arrangement, renamed);
  }

  template <class Rename>
  void add(std::size_t m, const Parameter& parameter, const Arrangement& arrangement,
           const Rename& rename) {
    const auto shared = std::make_shared<const Arrangement>(arrangement);
    std::set<std::string> seen;
    for (const TensorPart& part : arrangement.parts)
      if (seen.insert(part.tensor).second)
        plan_.push_back(
            {{rename(part.tensor), result_.format, part.shape}, m, parameter, shared, part.tensor});
  }

  // `own`: the names of a file that holds this module alone.
  TensorNames names_of(std::size_t m, bool own) {
    const TensorFamily& family = *find_tensor_family(module(m).kind, source(m).type);
    if (options_.llava) {
      const LlavaRoots roots = llava_roots(module(m).kind);
      return {module(m), family, roots.module, roots.head};
    }
    if (own || source(m).folder.empty()) return {module(m), family};
    return {module(m), family, *folder_of(m)};
  }
  std::shared_ptr<const TensorFolder> folder_of(std::size_t m) {
    std::shared_ptr<const TensorFolder>& folder = folders_[source(m).folder];
    if (!folder) folder = std::make_shared<const TensorFolder>(source(m).folder);
    return folder;
  }

  std::string data(const Planned& planned) {
    if (planned.folder != nullptr) {
      const StoredTensor& stored = *planned.folder->find(planned.source);
      return scatter(*planned.arrangement, planned.source, planned.folder->data(stored),
                     stored.format, result_.format);
    }
    if (values_of_ != planned.parameter.name) {
      values_ = values(planned.module, planned.parameter);
      values_of_ = planned.parameter.name;
      done_ += planned.parameter.count();
      if (options_.progress)
        options_.progress(static_cast<double>(done_) / static_cast<double>(all_));
    }
    return scatter(*planned.arrangement, planned.source, values_.bytes.data(), values_.format,
                   result_.format);
  }

  // Returns the values of a parameter; those of bf16 training in fp32 where it keeps them so.
  Values read(const Parameter& parameter) {
    const bool master = reader_.has(parameter, ".master");
    Values values{master ? "F32" : manifest_.format, {}};
    values.bytes = bytes_for(parameter.count(), values.format);
    reader_.read(parameter, master ? ".master" : "", {{}, {0, parameter.count()}}, values.format,
                 values.bytes.data());
    return values;
  }

  Values values(std::size_t m, const Parameter& parameter) {
    Values values = read(parameter);
    if (!is_lora(module(m)) || !parameter.adapted || !is_published(parameter)) return values;
    const std::vector<Parameter> all = parameters(module(m));
    const std::string stem = parameter.name.substr(0, parameter.name.rfind('.'));
    const auto named = [&](const std::string& name) -> const Parameter& {
      return *std::find_if(all.begin(), all.end(),
                           [&](const Parameter& other) { return other.name == name; });
    };
    const Values a = read(named(stem + ".lora_a")), b = read(named(stem + ".lora_b"));
    const std::int64_t rows = parameter.shape[0], columns = parameter.shape[1];
    const std::int64_t rank = module(m).lora_rank;
    const double scale = low_rank_scale(module(m));
    Values merged{"F64", bytes_for(parameter.count(), "F64")};
    std::vector<double> sums(static_cast<std::size_t>(columns)), left(sums);
    std::vector<double> all_a(static_cast<std::size_t>(rank * columns));
    for (std::size_t i = 0; i < all_a.size(); ++i) all_a[i] = a.at(static_cast<std::int64_t>(i));
    for (std::int64_t row = 0; row < rows; ++row) {
      std::fill(sums.begin(), sums.end(), 0);
      for (std::int64_t r = 0; r < rank; ++r) {
        const double factor = scale * b.at(row * rank + r);
        const double* const line = all_a.data() + r * columns;
        for (std::int64_t c = 0; c < columns; ++c)
          sums[static_cast<std::size_t>(c)] += factor * line[c];
      }
      for (std::int64_t c = 0; c < columns; ++c)
        write_number<Float64>(
            merged.bytes.data() + (row * columns + c) * std::int64_t{sizeof(double)},
            values.at(row * columns + c) + sums[static_cast<std::size_t>(c)]);
    }
    return merged;
  }

  // Throws InputError if the module is not the model that its configuration describes: the scenario
  // may have changed some of its dimensions.
  void check_config(std::size_t m) const {
    const Module& own = module(m);
    if (own.kind == ModuleKind::projector || source(m).config.empty()) return;
    const HfModule read = read_hf_config(read_file(source(m).config), source(m).config, own.kind);
    const Module& published = read.module;
    if (!read.deviations.empty())
      throw InputError(source(m).config, "",
                       "the model that it describes computes something else than " + own.name +
                           " here: " + joined(read.deviations),
                       "an export would have other outputs than the run");
    static const std::set<std::string> free = {"lora_rank", "lora_alpha", "mask", "loss_weight",
                                               "balance_weight"};
    for (const ModuleField& field : module_fields()) {
      const std::string_view key = field.key;
      if (!field.is_of(own.kind) || free.contains(field.key)) continue;
      // A LLaVA says itself which block's rows it reads.
      if (options_.llava && (key == "final_norm" || key == "layers")) continue;
      if (key == "image_size" && own.rotary) continue;  // any size
      const bool same =
          std::visit([&](auto member) { return own.*member == published.*member; }, field.member);
      if (!same)
        throw InputError(source(m).config, "",
                         "describes another " + own.name + " than the run trained: \"" + field.key +
                             "\" differs",
                         "write a config.json of the module's own dimensions, and train from it; "
                         "--llava exports an encoder without its last blocks");
    }
  }

  void write_config(const Group& group, const std::string& folder) {
    const std::size_t first = group.modules.front();
    if (options_.llava) return write_llava(folder);
    if (group.adapter) {
      write_file(
          folder + "/adapter_config.json",
          adapter_config(module(first), {targets_.begin(), targets_.end()}, source(first).folder));
      return;
    }
    if (source(first).config.empty()) {
      write_file(folder + "/config.json", projector_config(result_.format));
      return;
    }
    // A projector alone is part of the model whose type names its tensors.
    const bool whole = group.modules.size() > 1 || module(first).kind == ModuleKind::projector;
    write_file(folder + "/config.json",
               exported_config(read_file(source(first).config), source(first).config,
                               module(first).kind, whole, result_.format));
  }

  void write_llava(const std::string& folder) const {
    const auto config = [&](std::size_t m) {
      return exported_config(read_file(source(m).config), source(m).config, module(m).kind,
                             /*whole=*/false, result_.format);
    };
    write_file(folder + "/config.json",
               llava_config(module(llava_.vision), config(llava_.vision), config(llava_.language),
                            result_.format, image_token_));
  }

  // Copies files that lie beside the configurations, those of the language module first. A LLaVA
  // also has the files that say how its images and texts are prepared.
  std::vector<std::string> carry(const Group& group, const std::string& folder) const {
    std::vector<std::string> copied;
    std::vector<std::size_t> from = {group.modules.front()};
    if (options_.llava) from = {llava_.language, llava_.vision};
    for (const std::size_t m : from) {
      const fs::path beside = fs::path(source(m).config).parent_path();
      if (source(m).config.empty()) continue;
      for (const char* name : kCarried)
        if (fs::is_regular_file(beside / name) && !fs::exists(fs::path(folder) / name) &&
            !(group.adapter && std::string_view(name) == "generation_config.json")) {
          fs::copy_file(beside / name, fs::path(folder) / name);
          copied.emplace_back(name);
        }
    }
    const auto add = [&](const char* name, const std::string& text) {
      if (fs::exists(fs::path(folder) / name)) return;
      write_file(folder + "/" + name, text);
      copied.emplace_back(name);
    };
    if (const auto chat = chat_of_training(); chat && lacks_chat_template(folder))
      add(kChatTemplate, jinja_text(chat->first, options_.image_token, chat->second));
    if (!options_.llava) return copied;
    const Module& vision = module(llava_.vision);
    add("processor_config.json", llava_processor(vision, options_.image_token));
    add("preprocessor_config.json", plain_preprocessor(vision));
    return copied;
  }

  // Returns the template and the system message of the conversations that the run trained on;
  // nothing if there are none, or if they have several.
  std::optional<std::pair<ChatTemplate, std::string>> chat_of_training() const {
    std::set<std::pair<ChatTemplate, std::string>> found;
    if (const auto* one = std::get_if<ConversationData>(&scenario_.data.source))
      found.emplace(one->chat, one->system);
    if (const auto* mixture = std::get_if<MixtureData>(&scenario_.data.source))
      for (const MixturePart& part : mixture->parts)
        if (const auto* one = std::get_if<ConversationData>(&part.source))
          found.emplace(one->chat, one->system);
    return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
  }
  // A folder with a tokenizer, of which no file has a template.
  static bool lacks_chat_template(const std::string& folder) {
    const fs::path in(folder);
    const fs::path config = in / "tokenizer_config.json";
    return fs::exists(in / "tokenizer.json") && !fs::exists(in / kChatTemplate) &&
           !fs::exists(in / "chat_template.json") &&
           !(fs::exists(config) &&
             read_file(config.string()).find("\"chat_template\"") != std::string::npos);
  }

  const Scenario& scenario_;
  const ExportOptions& options_;
  const Manifest& manifest_;
  CheckpointReader reader_;
  std::string out_;
  std::vector<ModuleWeights> sources_;  // by module
  LlavaModules llava_;                  // if options_.llava
  std::int32_t image_token_ = 0;
  Exported result_;
  std::vector<Planned> plan_;
  std::set<std::string> targets_;
  std::map<std::string, std::shared_ptr<const TensorFolder>> folders_;
  std::string values_of_;  // parameter
  Values values_;
  std::int64_t done_ = 0, all_ = 0;  // elements
};

// Removes the partial export unless it was renamed.
struct Unfinished {
  std::string path;
  ~Unfinished() {
    std::error_code error;
    fs::remove_all(path, error);
  }
};

}  // namespace

Exported export_run(const Scenario& scenario, const ExportOptions& asked) {
  ExportOptions options = asked;
  while (options.out.size() > 1 && options.out.back() == '/') options.out.pop_back();
  const std::string checkpoints = RunPaths{options.run}.checkpoints();
  const std::vector<std::int64_t> steps = steps_in(checkpoints);
  if (steps.empty())
    throw InputError(options.run, "", "has no checkpoint to export",
                     "train the run until it has saved one");
  const std::int64_t step = options.step.value_or(steps.back());
  if (std::find(steps.begin(), steps.end(), step) == steps.end()) {
    std::vector<std::string> known;
    for (const std::int64_t s : steps) known.push_back(std::to_string(s));
    throw InputError(options.run, "", "has no checkpoint of step " + std::to_string(step),
                     "it has: " + joined(known));
  }
  if (fs::exists(options.out) && !(fs::is_directory(options.out) && fs::is_empty(options.out)))
    throw InputError(options.out, "", "exists already", "name a new folder, or remove this one");
  const Manifest manifest = read_manifest(checkpoints, step);
  const Unfinished partial{options.out + kPartialSuffix};
  std::error_code error;
  fs::remove_all(partial.path, error);
  fs::create_directories(partial.path);
  const Exported made =
      Export(scenario, options, manifest, step_folder(checkpoints, step), partial.path).run();
  sync_folder(partial.path);
  fs::remove(options.out, error);  // an empty folder
  fs::rename(partial.path, options.out);
  return made;
}

}  // namespace polyphony
