// Language configurations (shared/model/hf_config.h).
#include <algorithm>

#include "shared/model/hf_parts.h"

namespace polyphony {
namespace {

// Rotary frequencies: the base, and what Qwen2-VL's turn with. Newer files keep both in
// "rope_parameters".
void read_rotary(const JsonValue& config, HfModule& result) {
  Module& m = result.module;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key) || !config.at(key).is_object()) continue;
    const JsonValue rope = config.at(key);
    const bool interleaved =
        rope.has("mrope_interleaved") && flag_or(rope, "mrope_interleaved", false);
    if (interleaved) {
      result.notes.emplace_back("rotary frequencies turn with the position alone, not by axis");
    } else if (rope.has("mrope_section")) {
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

// "num_local_experts" in Mixtral's configurations, "num_experts" in Qwen's, "n_routed_experts" in
// DeepSeek's.
void read_experts(const JsonValue& config, const std::string& type, HfModule& result) {
  Module& m = result.module;
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"})
    if (config.has(key)) m.experts = whole(config, key, 1 << 16);
  if (m.experts == 0) return;
  const bool mixtral = type == "mixtral";
  m.experts_per_token = mixtral ? whole_or(config, "num_experts_per_tok", 1 << 16, 2)
                                : whole(config, "num_experts_per_tok", 1 << 16);
  m.expert_ffn = whole_or(config, "moe_intermediate_size", kMostWidth, m.ffn);
  m.dense_blocks = config.has("first_k_dense_replace")
                       ? static_cast<int>(config.at("first_k_dense_replace").integer())
                       : 0;
  if (m.dense_blocks == 0) m.ffn = 0;
  const char* const all_sparse = "only models with experts in every layer are supported";
  if (whole_or(config, "decoder_sparse_step", kMostLayers, 1) != 1)
    config.refuse_at("decoder_sparse_step", "dense layers between sparse ones", all_sparse);
  if (config.has("mlp_only_layers")) {
    const JsonValue dense = config.at("mlp_only_layers");
    if (!dense.is_list() || dense.size() > 0)
      config.refuse_at("mlp_only_layers", "dense layers between sparse ones", all_sparse);
  }
  if (!mixtral && type != "gpt_oss" && !flag_or(config, "norm_topk_prob", false))
    result.notes.emplace_back("the weights of a token's experts sum to 1 here");
  if (config.has("router_aux_loss_coef"))
    result.notes.emplace_back(
        "the load-balance loss is left out: say \"balance_weight\" for one per sample");
}

const LanguageFamily& family_of(const std::string& type) {
  const std::vector<LanguageFamily>& all = language_families();
  return *std::find_if(all.begin(), all.end(), [&](const LanguageFamily& family) {
    return std::find(family.types.begin(), family.types.end(), type) != family.types.end();
  });
}

// Where `usual` is 0 the key must be there.
int whole_or_usual(const JsonValue& config, const char* key, std::int64_t most, int usual) {
  return usual > 0 ? whole_or(config, key, most, usual) : whole(config, key, most);
}

int head_width(const JsonValue& config, const Module& m, int usual) {
  for (const char* key : {"head_dim", "qk_nope_head_dim"})
    if (config.has(key)) return whole(config, key, kMostWidth);
  return usual > 0 ? usual : divided(config, "hidden_size", m.hidden, m.heads);
}

}  // namespace

HfModule read_hf_language(const JsonValue& config, const std::string& type) {
  const LanguageFamily& family = family_of(type);
  HfModule result;
  Module& m = result.module;
  m.kind = ModuleKind::language;
  m.layers = whole(config, "num_hidden_layers", kMostLayers);
  m.hidden = whole(config, "hidden_size", kMostWidth);
  m.heads = whole_or_usual(config, "num_attention_heads", kMostWidth, family.heads);
  m.kv_heads = whole_or(config, "num_key_value_heads", kMostWidth,
                        family.kv_heads > 0 ? family.kv_heads : m.heads);
  m.head_dim = head_width(config, m, family.head_dim);
  // Models with experts everywhere need not name it.
  const bool sparse = config.has("moe_intermediate_size");
  const char* const ffn = config.has(family.ffn) ? family.ffn : "intermediate_size";
  m.ffn = sparse ? whole_or(config, ffn, kMostWidth, 0) : whole(config, ffn, kMostWidth);
  m.gated = true;
  m.vocab = whole_or_usual(config, "vocab_size", 1 << 24, family.vocab);
  m.tied = flag_or(config, "tie_word_embeddings", family.tied);
  m.rope_theta = family.rope_theta;
  read_rotary(config, result);
  m.attention_bias = flag_or(config, "attention_bias", false);
  m.mlp_bias = flag_or(config, "mlp_bias", false);
  m.qkv_bias = family.qkv_bias;
  m.qk_norm = family.qk_norm;
  read_experts(config, type, result);
  if (family.read != nullptr) family.read(config, type, result);
  // Qwen2 names a window but does not use it unless told so.
  if (config.has("sliding_window") && flag_or(config, "use_sliding_window", type == "mistral"))
    result.notes.emplace_back("sliding-window attention runs as full causal attention");
  return result;
}

}  // namespace polyphony
