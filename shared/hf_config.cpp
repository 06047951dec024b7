#include "shared/hf_config.h"

#include <algorithm>

#include "shared/scenario_form.h"
#include "shared/strict_json.h"

namespace polyphony {
namespace {

const std::vector<std::string> kLanguageTypes = {"llama",         "mistral", "qwen2",    "qwen2_vl",
                                                 "qwen2_vl_text", "mixtral", "qwen3_moe"};
const std::vector<std::string> kVisionTypes = {"clip_vision_model", "siglip_vision_model",
                                               "intern_vit_6b", "qwen2_vl"};

// One key of a configuration, refused in its own place. Configurations hold many other keys, so no
// Form covers the whole.
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

// The part of a composite configuration that describes `kind`.
JsonValue part_of(const JsonValue& root, ModuleKind kind) {
  const std::vector<std::string> names =
      kind == ModuleKind::vision
          ? std::vector<std::string>{"vision_config"}
          : std::vector<std::string>{"text_config", "llm_config", "language_config"};
  for (const std::string& name : names)
    if (root.has(name) && root.at(name).is_object()) return root.at(name);
  return root;
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
  if (config.has("rope_theta")) {
    config.at("rope_theta").check(number_form(1, 1e12));
    m.rope_theta = config.at("rope_theta").number();
  }
  read_experts(config, type, result);
  if (type == "qwen3_moe") result.notes.emplace_back("the norms of queries and keys are left out");
  if (type.starts_with("qwen2") || flag_or(config, "attention_bias", false))
    result.notes.emplace_back("the bias on queries, keys and values is left out");
  if (config.has("rope_scaling"))
    result.notes.emplace_back("the scaling of rotary frequencies for long contexts is left out");
  // Qwen2 names a window but does not use it unless told so.
  if (config.has("sliding_window") && flag_or(config, "use_sliding_window", type == "mistral"))
    result.notes.emplace_back("sliding-window attention runs as full causal attention");
  return result;
}

HfModule read_vision(const JsonValue& config, const std::string& type) {
  HfModule result;
  Module& m = result.module;
  m.kind = ModuleKind::vision;
  m.attention_bias = true;
  if (type == "qwen2_vl") {
    m.layers = whole(config, "depth", kMostLayers);
    m.hidden = whole(config, "embed_dim", kMostWidth);
    m.heads = whole(config, "num_heads", kMostWidth);
    m.ffn = m.hidden * whole_or(config, "mlp_ratio", 64, 4);
    m.image_size = 448;
    result.notes.emplace_back(
        "the configuration names no image size: 448 pixels, say \"image_size\" for another");
    result.notes.emplace_back("temporal patches and rotary positions are left out");
  } else {
    m.layers = whole(config, "num_hidden_layers", kMostLayers);
    m.hidden = whole(config, "hidden_size", kMostWidth);
    m.heads = whole(config, "num_attention_heads", kMostWidth);
    m.ffn = whole(config, "intermediate_size", kMostWidth);
    m.image_size = whole(config, "image_size", 1 << 16);
  }
  m.kv_heads = m.heads;
  m.head_dim = divided(config, type == "qwen2_vl" ? "embed_dim" : "hidden_size", m.hidden, m.heads);
  m.patch = whole(config, "patch_size", 1 << 16);
  m.channels = whole_or(config, "num_channels", 64, whole_or(config, "in_chans", 64, 3));
  if (m.patch <= m.image_size && m.image_size % m.patch != 0) {
    const int kept = m.image_size / m.patch * m.patch;
    result.notes.push_back(std::to_string(m.image_size) + " pixels are cut to the " +
                           std::to_string(kept) + " that whole patches cover");
    m.image_size = kept;
  }
  if (type == "clip_vision_model" || type == "intern_vit_6b")
    result.notes.emplace_back("the class token is left out: one token less per image");
  if (flag_or(config, "qk_normalization", false))
    result.notes.emplace_back("the norms of queries and keys are left out");
  if (text_or(config, "norm_type", "layer_norm") != "layer_norm")
    result.notes.emplace_back("RMSNorm runs as LayerNorm");
  if (!flag_or(config, "qkv_bias", true))
    result.notes.emplace_back("linear layers have biases here");
  if (const std::string act = text_or(config, "hidden_act", "gelu"); act == "quick_gelu")
    result.notes.emplace_back("quick-GELU runs as GELU");
  return result;
}

}  // namespace

HfModule read_hf_config(const std::string& text, const std::string& file, ModuleKind kind) {
  const JsonValue root = JsonValue::parse(text, file);
  if (!root.is_object())
    root.refuse("not an object", "give the path of a Hugging Face config.json");
  const JsonValue config = part_of(root, kind);
  const std::vector<std::string>& types =
      kind == ModuleKind::vision ? kVisionTypes : kLanguageTypes;
  // A part may lack its own model_type (Qwen2-VL's vision_config in older files): the whole's then
  // holds.
  const std::string type = text_or(config, "model_type", text_or(root, "model_type", ""));
  if (type.empty())
    root.refuse("key \"model_type\" is missing", "give the path of a Hugging Face config.json");
  if (std::find(types.begin(), types.end(), type) == types.end())
    config.refuse_at("model_type",
                     "model type \"" + type + "\" is not known as a " + name(kind) + " module",
                     suggest(type, types) + ", or write the dimensions instead of \"hf\"");
  return kind == ModuleKind::vision ? read_vision(config, type) : read_language(config, type);
}

}  // namespace polyphony
