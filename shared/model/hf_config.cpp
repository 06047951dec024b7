#include <algorithm>

#include "shared/model/hf_parts.h"

namespace polyphony {

int whole(const JsonValue& config, const char* key, std::int64_t most) {
  if (!config.has(key))
    config.refuse(std::string("key \"") + key + "\" is missing",
                  "is this the config.json of a supported model?");
  config.at(key).check(integer_form(1, most));
  return static_cast<int>(config.at(key).integer());
}
int whole_or(const JsonValue& config, const char* key, std::int64_t most, int otherwise) {
  return config.has(key) ? whole(config, key, most) : otherwise;
}
bool flag_or(const JsonValue& config, const char* key, bool otherwise) {
  if (!config.has(key)) return otherwise;
  config.at(key).check(boolean_form());
  return config.at(key).boolean();
}
std::string text_or(const JsonValue& config, const char* key, const std::string& otherwise) {
  if (!config.has(key)) return otherwise;
  config.at(key).check(text_form("llama"));
  return config.at(key).text();
}

int divided(const JsonValue& config, const char* key, int value, int by) {
  if (value % by != 0)
    config.refuse_at(
        key, std::to_string(value) + " is not a multiple of " + std::to_string(by) + " heads",
        "is the configuration complete?");
  return value / by;
}

namespace {

// The model types that are read as a module of this kind.
const std::vector<std::string>& types_of(ModuleKind kind) {
  static const std::vector<std::string> language = {
      "llama",         "mistral",    "mixtral",         "qwen2", "qwen2_vl",
      "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen3", "qwen3_moe"};
  static const std::vector<std::string> vision = {"clip_vision_model", "siglip_vision_model",
                                                  "intern_vit_6b", "qwen2_vl", "qwen2_5_vl"};
  static const std::vector<std::string> audio = {"whisper"};
  if (kind == ModuleKind::vision) return vision;
  return kind == ModuleKind::audio ? audio : language;
}

// The part of a composite configuration that describes `kind`.
JsonValue part_of(const JsonValue& root, ModuleKind kind) {
  std::vector<std::string> names = {"text_config", "llm_config", "language_config"};
  if (kind == ModuleKind::vision) names = {"vision_config"};
  if (kind == ModuleKind::audio) names = {"audio_config"};
  for (const std::string& name : names)
    if (root.has(name) && root.at(name).is_object()) return root.at(name);
  return root;
}

// Rotary frequencies: the base, and what Qwen2-VL's turn with. Newer files keep both in
// "rope_parameters".
void read_rotary(const JsonValue& config, HfModule& result) {
  Module& m = result.module;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key) || !config.at(key).is_object()) continue;
    const JsonValue rope = config.at(key);
    if (rope.has("mrope_section")) {
      rope.at("mrope_section").check(list_form(integer_form(0, kMostWidth), 3, 3));
      rope.read("mrope_section", m.rope_sections);
    } else if (text_or(rope, "rope_type", text_or(rope, "type", "scaled")) != "default") {
      result.notes.emplace_back("the scaling of rotary frequencies for long contexts is left out");
    }
    if (rope.has("rope_theta")) {
      rope.at("rope_theta").check(number_form(1, 1e12));
      m.rope_theta = rope.at("rope_theta").number();
    }
  }
  if (!config.has("rope_theta")) return;
  config.at("rope_theta").check(number_form(1, 1e12));
  m.rope_theta = config.at("rope_theta").number();
}

// "num_local_experts" in Mixtral's configurations, "num_experts" in Qwen's.
void read_experts(const JsonValue& config, const std::string& type, HfModule& result) {
  Module& m = result.module;
  m.experts =
      whole_or(config, "num_local_experts", 1 << 16, whole_or(config, "num_experts", 1 << 16, 0));
  if (m.experts == 0) return;
  const bool mixtral = type == "mixtral";
  m.experts_per_token = mixtral ? whole_or(config, "num_experts_per_tok", 1 << 16, 2)
                                : whole(config, "num_experts_per_tok", 1 << 16);
  m.expert_ffn = whole_or(config, "moe_intermediate_size", kMostWidth, m.ffn);
  m.ffn = 0;
  const char* const all_sparse = "only models with experts in every layer are supported";
  if (whole_or(config, "decoder_sparse_step", kMostLayers, 1) != 1)
    config.refuse_at("decoder_sparse_step", "dense layers between sparse ones", all_sparse);
  if (config.has("mlp_only_layers")) {
    const JsonValue dense = config.at("mlp_only_layers");
    if (!dense.is_list() || dense.size() > 0)
      config.refuse_at("mlp_only_layers", "dense layers between sparse ones", all_sparse);
  }
  if (!mixtral && !flag_or(config, "norm_topk_prob", false))
    result.notes.emplace_back("the weights of a token's experts sum to 1 here");
  if (config.has("router_aux_loss_coef"))
    result.notes.emplace_back(
        "the load-balance loss is left out: say \"balance_weight\" for one per sample");
}

HfModule read_language(const JsonValue& config, const std::string& type) {
  HfModule result;
  Module& m = result.module;
  m.kind = ModuleKind::language;
  m.layers = whole(config, "num_hidden_layers", kMostLayers);
  m.hidden = whole(config, "hidden_size", kMostWidth);
  m.heads = whole(config, "num_attention_heads", kMostWidth);
  m.kv_heads = whole_or(config, "num_key_value_heads", kMostWidth, m.heads);
  m.head_dim = config.has("head_dim") ? whole(config, "head_dim", kMostWidth)
                                      : divided(config, "hidden_size", m.hidden, m.heads);
  m.ffn = whole(config, "intermediate_size", kMostWidth);
  m.gated = true;
  m.vocab = whole(config, "vocab_size", 1 << 24);
  m.tied = flag_or(config, "tie_word_embeddings", false);
  read_rotary(config, result);
  m.attention_bias = flag_or(config, "attention_bias", false);
  m.mlp_bias = flag_or(config, "mlp_bias", false);
  m.qkv_bias = type.starts_with("qwen2");
  m.qk_norm = type.starts_with("qwen3");
  read_experts(config, type, result);
  // Qwen2 names a window but does not use it unless told so.
  if (config.has("sliding_window") && flag_or(config, "use_sliding_window", type == "mistral"))
    result.notes.emplace_back("sliding-window attention runs as full causal attention");
  return result;
}

}  // namespace

HfModule read_hf_config(const std::string& text, const std::string& file, ModuleKind kind) {
  const JsonValue root = JsonValue::parse(text, file);
  if (!root.is_object())
    root.refuse("not an object", "give the path of a Hugging Face config.json");
  const JsonValue config = part_of(root, kind);
  const std::vector<std::string>& types = types_of(kind);
  // A part may lack its own model_type (Qwen2-VL's vision_config in older files): the whole's then
  // holds.
  const std::string type = text_or(config, "model_type", text_or(root, "model_type", ""));
  if (type.empty())
    root.refuse("key \"model_type\" is missing", "give the path of a Hugging Face config.json");
  if (std::find(types.begin(), types.end(), type) == types.end())
    config.refuse_at("model_type",
                     "model type \"" + type + "\" is not known as a " + name(kind) + " module",
                     suggest(type, types) + ", or write the dimensions instead of \"hf\"");
  if (kind == ModuleKind::vision) return read_hf_vision(config, type);
  return kind == ModuleKind::audio ? read_hf_audio(config) : read_language(config, type);
}

}  // namespace polyphony
