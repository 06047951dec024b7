// Reads language configurations (shared/model/hf_config.h).
#include <algorithm>
#include <cmath>

#include "shared/model/hf_keys.h"
#include "shared/model/hf_parts.h"

namespace polyphony {
namespace {

// Keys of a RoPE scaling.
const std::vector<std::string>& rope_keys() {
  static const std::vector<std::string> keys{"rope_type",
                                             "type",
                                             "rope_theta",
                                             "mrope_section",
                                             "factor",
                                             "mrope_interleaved",
                                             "low_freq_factor",
                                             "short_factor",
                                             "partial_rotary_factor",
                                             "beta_fast",
                                             "high_freq_factor",
                                             "original_max_position_embeddings",
                                             "beta_slow",
                                             "long_factor",
                                             "attention_factor",
                                             "mscale",
                                             "mscale_all_dim",
                                             "truncate"};
  return keys;
}

// Returns the factor by which YaRN sharpens attention (arXiv 2309.00071, §3.4).
double yarn_scale(double factor, double weight = 1) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

// Reads YaRN. Source of the keys and of their defaults: huggingface/transformers
// modeling_rope_utils.py; of the factor on DeepSeek-V3's scores: its model's code.
void read_yarn(const JsonValue& config, const JsonValue& rope, HfModule& result) {
  constexpr const char* kContext = "original_max_position_embeddings";
  constexpr double kFast = 32, kSlow = 1;
  Module& m = result.module;
  const JsonValue& stated = rope.has(kContext) ? rope : config;
  const char* const key = rope.has(kContext) ? kContext : "max_position_embeddings";
  const std::string model = text_or(config, "model_type", "");
  if (!stated.has(key) || !rope.has("factor") || model == "deepseek_v2")
    return result.deviate("RoPE scaling for long contexts is not modeled: \"yarn\"");
  m.rope_scaling = RopeScaling::yarn;
  m.rope_factor = number_or(rope, "factor", 1);
  m.rope_context = whole(stated, key, kMostTokens);
  m.rope_high_factor = number_or(rope, "beta_fast", kFast);
  m.rope_low_factor = number_or(rope, "beta_slow", kSlow);
  m.rope_whole = flag_or(rope, "truncate", true);
  const double all = number_or(rope, "mscale_all_dim", 0), one = number_or(rope, "mscale", 0);
  m.rope_attention = one > 0 && all > 0
                         ? yarn_scale(m.rope_factor, one) / yarn_scale(m.rope_factor, all)
                         : yarn_scale(m.rope_factor);
  m.rope_attention = number_or(rope, "attention_factor", m.rope_attention);
  if (all > 0 && (model == "deepseek_v3" || model == "kimi_k2"))
    m.score_factor = std::pow(yarn_scale(m.rope_factor, all), 2);
}

// Reads how the frequencies were changed for a longer context.
void read_scaling(const JsonValue& config, const JsonValue& rope, const std::string& type,
                  HfModule& result) {
  Module& m = result.module;
  if (type == "default") return;
  if (type == "yarn") return read_yarn(config, rope, result);
  if (type != "linear" && type != "llama3")
    return result.deviate("RoPE scaling for long contexts is not modeled: \"" + type + "\"");
  const auto number = [&](const char* key) {
    if (!rope.has(key))
      rope.refuse(std::string("key \"") + key + "\" is missing",
                  "check that the configuration is complete");
    return number_or(rope, key, 0);
  };
  m.rope_scaling = enum_named<RopeScaling>(type);
  m.rope_factor = number("factor");
  if (type == "linear") return;
  m.rope_low_factor = number("low_freq_factor");
  m.rope_high_factor = number("high_freq_factor");
  m.rope_context = whole(rope, "original_max_position_embeddings", kMostTokens);
}

void read_frequencies(const JsonValue& config, const JsonValue& rope, double& theta,
                      HfModule& result) {
  for (const std::string& key : rope.keys())
    if (const auto& known = rope_keys(); std::find(known.begin(), known.end(), key) == known.end())
      result.notes.push_back(rope.pointer() + "/" + key + " is unknown and ignored");
  const bool interleaved =
      rope.has("mrope_interleaved") && flag_or(rope, "mrope_interleaved", false);
  if (interleaved) {
    result.deviate("rotary frequencies follow the position only, not time, row and column");
  } else if (rope.has("mrope_section")) {
    rope.at("mrope_section").check(list_form(integer_form(0, kMostWidth), 3, 3));
    rope.read("mrope_section", result.module.rope_sections);
    const std::string type = text_or(rope, "rope_type", text_or(rope, "type", "default"));
    if (type != "default" && type != "mrope")
      result.deviations.push_back("RoPE scaling for long contexts is not modeled: \"" + type +
                                  "\"");
  } else {
    read_scaling(config, rope, text_or(rope, "rope_type", text_or(rope, "type", "scaled")), result);
  }
  if (!rope.has("rope_theta")) return;
  rope.at("rope_theta").check(number_form(1, 1e12));
  theta = rope.at("rope_theta").number();
}

// Reads the base of the rotary frequencies and Qwen2-VL's sections. Newer files keep both in
// "rope_parameters", with separate entries for sliding-window blocks if these differ.
void read_rotary(const JsonValue& config, HfModule& result) {
  Module& m = result.module;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key) || !config.at(key).is_object()) continue;
    const JsonValue rope = config.at(key);
    const bool by_kind = rope.has("full_attention") && rope.at("full_attention").is_object();
    read_frequencies(config, by_kind ? rope.at("full_attention") : rope, m.rope_theta, result);
    if (by_kind && rope.has("sliding_attention") && rope.at("sliding_attention").is_object())
      read_frequencies(config, rope.at("sliding_attention"), m.local_rope_theta, result);
  }
  if (!config.has("rope_theta")) return;
  config.at("rope_theta").check(number_form(1, 1e12));
  m.rope_theta = config.at("rope_theta").number();
}

// Reads the experts. Their number is "num_local_experts" in Mixtral's configurations, "num_experts"
// in Qwen's, and "n_routed_experts" in DeepSeek's.
void read_experts(const JsonValue& config, const std::string& type, HfModule& result) {
  Module& m = result.module;
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"})
    if (const HfKeys* row = find_hf_key(type, ModuleKind::language, key);
        config.has(key) && row != nullptr && row->fate == HfFate::used)
      m.experts = whole(config, key, 1 << 16);
  if (m.experts == 0) return;
  const bool mixtral = type == "mixtral";
  m.experts_per_token = mixtral ? whole_or(config, "num_experts_per_tok", 1 << 16, 2)
                                : whole(config, "num_experts_per_tok", 1 << 16);
  m.expert_ffn = whole_or(config, "moe_intermediate_size", kMostWidth, m.ffn);
  m.dense_blocks = config.has("first_k_dense_replace")
                       ? static_cast<int>(config.at("first_k_dense_replace").integer())
                       : 0;
  if (m.dense_blocks == 0) m.ffn = 0;
  const char* const all_sparse = "every layer must have experts";
  if (whole_or(config, "decoder_sparse_step", kMostLayers, 1) != 1)
    config.refuse_at("decoder_sparse_step", "dense layers between sparse ones are not supported",
                     all_sparse);
  if (config.has("mlp_only_layers")) {
    const JsonValue dense = config.at("mlp_only_layers");
    if (!dense.is_list() || dense.size() > 0)
      config.refuse_at("mlp_only_layers", "dense layers between sparse ones are not supported",
                       all_sparse);
  }
  const bool by_code =
      mixtral || type == "gpt_oss" || type == "qwen3_5_moe_text" || type == "qwen3_vl_moe_text";
  const bool usual =
      type == "qwen3_next" || type == "deepseek_v3" || type == "kimi_k2" || type == "kimi_vl";
  if (!by_code && !flag_or(config, "norm_topk_prob", usual))
    result.deviate("the weights of a token's experts are normalized to sum to 1");
  if (config.has("router_aux_loss_coef"))
    result.notes.emplace_back(
        "the load-balancing loss is omitted: set \"balance_weight\" to add one per sample");
}

const LanguageFamily& family_of(const std::string& type) {
  const std::vector<LanguageFamily>& all = language_families();
  return *std::find_if(all.begin(), all.end(), [&](const LanguageFamily& family) {
    return std::find(family.types.begin(), family.types.end(), type) != family.types.end();
  });
}

// Reads tie_word_embeddings from the module's part of a composite configuration, else from the
// whole.
bool tied_or(const JsonValue& config, const JsonValue& whole, bool usual) {
  const char* const key = "tie_word_embeddings";
  return config.has(key) ? flag_or(config, key, usual) : flag_or(whole, key, usual);
}

// Rejects layer types other than full attention, for families whose reader does not handle them.
void refuse_other_layers(const JsonValue& config) {
  if (!config.has("layer_types")) return;
  const JsonValue types = config.at("layer_types");
  types.check(list_form(text_form("full_attention")));
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types.at(i).text() != "full_attention")
      types.at(i).refuse("\"" + types.at(i).text() + "\" is not supported for this model type",
                         "all its blocks must be \"full_attention\"");
}

int head_width(const JsonValue& config, const Module& m, int usual) {
  for (const char* key : {"head_dim", "qk_nope_head_dim"})
    if (config.has(key)) return whole(config, key, kMostWidth);
  return usual > 0 ? usual : divided(config, "hidden_size", m.hidden, m.heads);
}

}  // namespace

void read_gates(const JsonValue& config, const char* key, const char* usual, Module& m) {
  struct Gate {
    const char* name;
    Activation activation;
  };
  static const std::vector<Gate> gates{{"silu", Activation::silu},
                                       {"swish", Activation::silu},
                                       {"gelu_pytorch_tanh", Activation::gelu},
                                       {"gelu_new", Activation::gelu}};
  const std::string stated = text_or(config, key, usual);
  const auto found = std::find_if(gates.begin(), gates.end(),
                                  [&](const Gate& gate) { return stated == gate.name; });
  if (found == gates.end())
    config.refuse_at(key, "gated activation \"" + stated + "\" is not supported",
                     "use silu or gelu_pytorch_tanh");
  m.activation = found->activation;
}

double epsilon_or(const JsonValue& config, double usual) {
  for (const char* key : {"rms_norm_eps", "norm_eps", "layer_norm_eps"}) {
    if (!config.has(key)) continue;
    config.at(key).check(number_form(0, 1));
    return config.at(key).number();
  }
  return usual;
}

HfModule read_hf_language(const JsonValue& config, const std::string& type,
                          const JsonValue& whole_config) {
  const LanguageFamily& family = family_of(type);
  HfModule result;
  Module& m = result.module;
  m.kind = ModuleKind::language;
  const bool is_part = config.pointer() != whole_config.pointer();
  const LanguageFamily::Part part = is_part ? family.part : LanguageFamily::Part{};
  const auto usual = [](int of_family, int of_part) { return of_family > 0 ? of_family : of_part; };
  m.layers = whole_or_usual(config, "num_hidden_layers", kMostLayers, part.layers);
  m.hidden = whole_or_usual(config, "hidden_size", kMostWidth, part.hidden);
  m.heads =
      whole_or_usual(config, "num_attention_heads", kMostWidth, usual(family.heads, part.heads));
  const int kv_heads = usual(family.kv_heads, part.kv_heads);
  m.kv_heads =
      whole_or(config, "num_key_value_heads", kMostWidth, kv_heads > 0 ? kv_heads : m.heads);
  m.head_dim = head_width(config, m, family.head_dim);
  // Models with experts in every block may omit F.
  const bool sparse = config.has("moe_intermediate_size");
  const char* const ffn = config.has(family.ffn) ? family.ffn : "intermediate_size";
  m.ffn = sparse ? whole_or(config, ffn, kMostWidth, 0)
                 : whole_or_usual(config, ffn, kMostWidth, part.ffn);
  m.gated = true;
  m.vocab = whole_or_usual(config, "vocab_size", 1 << 24, usual(family.vocab, part.vocab));
  m.tied = tied_or(config, whole_config, family.tied);
  m.norm_epsilon = epsilon_or(config, family.norm_epsilon);
  m.rope_theta = family.rope_theta;
  read_rotary(config, result);
  m.attention_bias = flag_or(config, "attention_bias", false);
  m.mlp_bias = flag_or(config, "mlp_bias", false);
  read_gates(config, "hidden_act", "silu", m);
  m.qkv_bias = family.qkv_bias;
  m.qk_norm = family.qk_norm;
  read_experts(config, type, result);
  if (family.read != nullptr) family.read(config, type, result);
  if (m.mixers.empty()) refuse_other_layers(config);
  return result;
}

}  // namespace polyphony
