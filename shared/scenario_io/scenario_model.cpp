#include <algorithm>
#include <map>

#include "shared/form/module_fields.h"
#include "shared/form/scenario_form.h"
#include "shared/model/hf_config.h"
#include "shared/model/presets.h"
#include "shared/scenario_io/scenario_parts.h"

namespace polyphony {
namespace {

constexpr const char* kConfiguration = "config.json";

void check_name(const JsonValue& value, const std::string& key) {
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (key.empty() || key.size() > 40 || !std::all_of(key.begin(), key.end(), legal))
    value.refuse_at(key, "\"" + key + "\" is not a module name",
                    "use 1 to 40 lower-case letters, digits and _");
  const auto& reserved = reserved_module_names();
  if (std::find(reserved.begin(), reserved.end(), key) != reserved.end())
    value.refuse_at(key, "no module may have the name \"" + key + "\"",
                    "it is a key of layouts or searches; use another name");
}

ModuleKind read_kind(const JsonValue& value, const std::string& key) {
  const std::vector<std::string> kinds = enum_names<ModuleKind>();
  std::string kind = key;
  value.read("kind", kind);
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    value.refuse("key \"kind\" is missing",
                 "write one of " + joined(kinds) + ", or use one of these as the name");
  return enum_named<ModuleKind>(kind);
}

void check_keys(const JsonValue& value, ModuleKind kind) {
  const std::vector<std::string> allowed = module_keys(kind);
  for (const std::string& key : value.keys())
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end())
      value.refuse_at(key, std::string("a ") + name(kind) + " module has no \"" + key + "\"",
                      "it can have: " + joined(allowed));
}

// Returns the module to which the keys are applied: a preset, a Hugging Face configuration, or the
// defaults of its kind.
Module base_module(const JsonValue& value, ModuleKind kind, const std::string& module_name,
                   const OtherFiles& files, std::vector<std::string>& notes) {
  const auto note = [&](const std::vector<std::string>& more) {
    for (const std::string& text : more) notes.push_back(module_name + ": " + text);
  };
  const auto published = [&](const HfModule& read) {
    if (!value.has("image_size")) note(read.image_size_notes);
    note(read.notes);
    Module module = read.module;
    if (read.merge > 0) module.merge = read.merge;  // for take_from_neighbours()
    return module;
  };
  if (value.has("preset") && value.has("hf"))
    value.refuse_at("hf", "hf and preset must not both be given", "keep one of the two");
  if (value.has("preset")) {
    const ModelPreset* preset = find_preset(value.at("preset").text());
    POLYPHONY_CHECK(preset != nullptr, "the form accepts presets only");
    if (preset->module.kind != kind)
      value.refuse_at("preset",
                      "preset must be a " + std::string(name(kind)) + " model, got " +
                          preset->name + ", a " + name(preset->module.kind) + " model",
                      "use one of: " + joined(preset_names(kind)));
    note(preset->notes);
    return preset->module;
  }
  if (value.has("weights") && value.at("weights").is_text() && !value.has("hf") &&
      kind != ModuleKind::projector) {
    const JsonValue folder = value.at("weights");
    return published(read_hf_config(files.text_in(folder, kConfiguration),
                                    files.place(folder) + "/" + kConfiguration, kind));
  }
  if (value.has("hf")) {
    if (kind != ModuleKind::vision && kind != ModuleKind::language && kind != ModuleKind::audio)
      value.refuse_at(
          "hf", std::string("configurations of ") + name(kind) + " modules are not supported yet",
          "write the dimensions");
    return published(read_hf_config(files.text(value.at("hf")), files.place(value.at("hf")), kind));
  }
  Module module;
  module.kind = kind;
  // Defaults: the block structure of Llama for language; of CLIP, Whisper and DiT for the others.
  const bool encoder = kind == ModuleKind::vision || kind == ModuleKind::audio;
  module.gated = kind == ModuleKind::language;
  module.attention_bias = encoder || kind == ModuleKind::diffusion;
  module.mlp_bias = encoder;
  module.norm = encoder ? Norm::layer : Norm::rms;
  return module;
}

void read_heads(const JsonValue& value, Module& module) {
  const bool new_width = value.has("hidden") || value.has("heads");
  if (!value.read("head_dim", module.head_dim) && (new_width || module.head_dim == 0) &&
      module.heads > 0) {
    if (module.hidden % module.heads != 0)
      value.refuse("hidden must be a multiple of heads, " + std::to_string(module.heads) +
                       ", got " + std::to_string(module.hidden),
                   "change one of them, or write \"head_dim\"");
    module.head_dim = module.hidden / module.heads;
  }
  if (!value.read("kv_heads", module.kv_heads) && (value.has("heads") || module.kv_heads == 0))
    module.kv_heads = module.heads;
}

// If every block has experts, the width of a preset's dense feed-forward layer becomes the width of
// an expert.
void settle_experts(const JsonValue& value, Module& module) {
  if (module.experts == 0 && value.has("experts")) {  // a dense form of a preset
    const auto clear = [&](const char* key, int& size) {
      if (!value.has(key)) size = 0;
    };
    clear("experts_per_token", module.experts_per_token);
    clear("expert_ffn", module.expert_ffn);
    clear("shared_ffn", module.shared_ffn);
    clear("dense_blocks", module.dense_blocks);
  }
  if (module.experts == 0 || module.dense_blocks > 0) return;
  if (value.has("ffn"))
    value.refuse_at(
        "ffn", "ffn must not be given: every block has experts, none a dense feed-forward layer",
        "write \"expert_ffn\", or \"shared_ffn\" for the expert that processes all tokens");
  if (module.expert_ffn == 0) module.expert_ffn = module.ffn;
  module.ffn = 0;
}

bool is_missing(const ModuleField& field, const Module& module) {
  const auto* size = std::get_if<int Module::*>(&field.member);
  return size != nullptr && field.needed != nullptr && field.needed(module) && module.**size == 0;
}

void need(const JsonValue& value, const Module& module) {
  for (const ModuleField& field : module_fields()) {
    if (!field.is_of(module.kind) || !is_missing(field, module)) continue;
    const std::vector<std::string> presets = preset_names(module.kind);
    value.refuse(std::string("key \"") + field.key + "\" is missing",
                 presets.empty() ? std::string("write its value")
                                 : "write its value, or a \"preset\" such as " + presets.front());
  }
}

// Whether a projector is that of a Qwen-VL or Kimi-VL, whose hidden layer is as wide as its input.
// That of a LLaVA is as wide as its output.
bool is_qwen_merger(const JsonValue& value, const OtherFiles& files) {
  if (!value.has("weights")) return false;
  const JsonValue weights = value.at("weights");
  const std::string type =
      weights.is_text()
          ? hf_model_type(files.text_in(weights, kConfiguration),
                          files.place(weights) + "/" + kConfiguration, ModuleKind::projector)
          : weights.at("model_type").text();
  return type.starts_with("qwen2") || type.starts_with("qwen3") || type == "kimi_vl";
}

Module read_module(const JsonValue& value, const std::string& key, const OtherFiles& files,
                   NumberFormat precision, std::vector<std::string>& notes) {
  const ModuleKind kind = read_kind(value, key);
  check_keys(value, kind);
  const bool abstract = is_abstract(value, kind);
  Module module = abstract ? read_abstract(value, kind, precision)
                           : base_module(value, kind, key, files, notes);
  module.name = key;
  if (value.has("train")) module.trainable = enum_named<Trainable>(value.at("train").text());
  if (kind == ModuleKind::projector) {
    if (!value.read("hidden", module.projector_hidden))
      module.projector_hidden = is_qwen_merger(value, files) ? kSizeOfInput : kSizeNotGiven;
    if (value.has("merge")) {
      const JsonValue merge = value.at("merge");
      module.merge =
          merge.is_text() ? merge.text().front() - '0' : static_cast<int>(merge.integer());
    }
    return module;
  }
  if (abstract) return module;
  for (const std::string& other : abstract_keys(kind))
    if (value.has(other))
      value.refuse_at(
          other, other + " must not be given: it is for abstract modules, this one has dimensions",
          "remove the key");
  for (const ModuleField& field : module_fields())
    if (field.is_of(kind)) field.read(value, module);
  settle_experts(value, module);
  need(value, module);
  if (kind == ModuleKind::diffusion && module.modulation == 0) module.modulation = module.hidden;
  read_heads(value, module);
  return module;
}

struct NamedEdge {
  std::string from, to;
  int to_layer = 0;
  int from_layer = -1;
};

void read_edges(const JsonValue& module, const std::string& to, std::vector<NamedEdge>& edges) {
  if (!module.has("from")) return;
  const JsonValue from = module.at("from");
  const auto add = [&](const JsonValue& one) {
    NamedEdge edge{one.is_text() ? one.text() : one.at("module").text(), to};
    if (!one.is_text()) one.read("to_layer", edge.to_layer);
    if (!one.is_text()) one.read("from_layer", edge.from_layer);
    edges.push_back(edge);
  };
  if (!from.is_list()) return add(from);
  for (std::size_t i = 0; i < from.size(); ++i) add(from.at(i));
}

// Returns the names in topological order: every edge goes forward, ties in alphabetical order.
std::vector<std::string> topological(const JsonValue& value, const std::vector<NamedEdge>& edges) {
  std::vector<std::string> waiting = value.keys(), order;
  const auto placed = [&](const std::string& n) {
    return std::find(order.begin(), order.end(), n) != order.end();
  };
  while (!waiting.empty()) {
    const auto ready = std::find_if(waiting.begin(), waiting.end(), [&](const std::string& n) {
      return std::all_of(edges.begin(), edges.end(),
                         [&](const NamedEdge& e) { return e.to != n || placed(e.from); });
    });
    if (ready == waiting.end())
      value.refuse("the modules form a cycle: " + joined(waiting),
                   "change a \"from\" of one of them");
    order.push_back(*ready);
    waiting.erase(ready);
  }
  return order;
}

}  // namespace

std::vector<ModuleWeights> read_weights(const JsonValue& value, const Model& model,
                                        const OtherFiles& files) {
  std::vector<ModuleWeights> all(model.modules.size());
  for (std::size_t m = 0; m < all.size(); ++m) {
    const Module& module = model.modules[m];
    const JsonValue own = value.at(module.name);
    if (!own.has("weights")) {
      if (own.has("hf"))
        all[m] = {"", files.place(own.at("hf")),
                  hf_model_type(files.text(own.at("hf")), files.place(own.at("hf")), module.kind)};
      continue;
    }
    const JsonValue weights = own.at("weights");
    if (!weights.is_text()) {
      const auto path = [&](const char* key) {
        return weights.has(key) ? files.place(weights.at(key)) : std::string();
      };
      all[m] = {path("folder"), path("config"), weights.at("model_type").text()};
      continue;
    }
    const std::string folder = files.place(weights), file = folder + "/" + kConfiguration;
    const std::string text = files.text_in(weights, kConfiguration);
    all[m] = {folder, file, hf_model_type(text, file, module.kind)};
    if (module.kind == ModuleKind::projector) continue;
    const HfModule published = read_hf_config(text, file, module.kind);
    if (!published.deviations.empty())
      own.refuse_at(
          "weights",
          "these weights do not mean the same in this program: " + joined(published.deviations),
          "name the config.json by \"hf\" instead, to predict the model or to train it "
          "from random weights");
  }
  return all;
}

Model read_model(const JsonValue& value, const OtherFiles& files, NumberFormat precision,
                 std::vector<std::string>& notes) {
  const std::vector<std::string> names = value.keys();
  if (names.empty())
    value.refuse("the model must have at least one module", "add \"language\": {…}");
  if (names.size() > 16)
    value.refuse("the model must have at most 16 modules, got " + std::to_string(names.size()),
                 "remove some");
  std::vector<NamedEdge> edges;
  for (const std::string& key : names) {
    check_name(value, key);
    read_edges(value.at(key), key, edges);
  }
  for (const NamedEdge& edge : edges)
    if (std::find(names.begin(), names.end(), edge.from) == names.end())
      value.at(edge.to).refuse_at("from", "there is no module \"" + edge.from + "\"",
                                  suggest(edge.from, names));
  Model model;
  std::map<std::string, ModuleId> ids;
  for (const std::string& key : topological(value, edges)) {
    ids[key] = ModuleId(model.modules.size());
    model.modules.push_back(read_module(value.at(key), key, files, precision, notes));
  }
  for (const NamedEdge& edge : edges)
    model.edges.push_back({ids.at(edge.from), ids.at(edge.to), edge.to_layer, edge.from_layer});
  std::sort(model.edges.begin(), model.edges.end(), [](const Edge& a, const Edge& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  derive_from_neighbors(value, model);
  return model;
}

}  // namespace polyphony
