// Language configurations (shared/model/hf_config.h).
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

}  // namespace

HfModule read_hf_language(const JsonValue& config, const std::string& type) {
  HfModule result;
  Module& m = result.module;
  m.kind = ModuleKind::language;
  m.layers = whole(config, "num_hidden_layers", kMostLayers);
  m.hidden = whole(config, "hidden_size", kMostWidth);
  if (type.starts_with("gemma3")) {  // older files leave out what is usual
    m.heads = whole_or(config, "num_attention_heads", kMostWidth, 8);
    m.kv_heads = whole_or(config, "num_key_value_heads", kMostWidth, 4);
    m.head_dim = whole_or(config, "head_dim", kMostWidth, 256);
  } else {
    m.heads = whole(config, "num_attention_heads", kMostWidth);
    m.kv_heads = whole_or(config, "num_key_value_heads", kMostWidth, m.heads);
    m.head_dim = config.has("head_dim") ? whole(config, "head_dim", kMostWidth)
                 : config.has("qk_nope_head_dim")
                     ? whole(config, "qk_nope_head_dim", kMostWidth)
                     : divided(config, "hidden_size", m.hidden, m.heads);
  }
  // Models with experts everywhere need not name it.
  const bool sparse = config.has("moe_intermediate_size");
  m.ffn = sparse ? whole_or(config, "intermediate_size", kMostWidth, 0)
                 : whole(config, "intermediate_size", kMostWidth);
  m.gated = true;
  const bool gemma = type.starts_with("gemma3");
  m.vocab = gemma ? whole_or(config, "vocab_size", 1 << 24, 262208)
                  : whole(config, "vocab_size", 1 << 24);
  m.tied = flag_or(config, "tie_word_embeddings", gemma);
  if (gemma) m.rope_theta = 1e6;
  read_rotary(config, result);
  m.attention_bias = flag_or(config, "attention_bias", false);
  m.mlp_bias = flag_or(config, "mlp_bias", false);
  m.qkv_bias = type.starts_with("qwen2");
  m.qk_norm = type.starts_with("qwen3") || gemma;
  read_experts(config, type, result);
  read_hf_mixed(config, type, result);
  // Qwen2 names a window but does not use it unless told so.
  if (config.has("sliding_window") && flag_or(config, "use_sliding_window", type == "mistral"))
    result.notes.emplace_back("sliding-window attention runs as full causal attention");
  return result;
}

}  // namespace polyphony
