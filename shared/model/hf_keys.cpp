#include "shared/model/hf_keys.h"

#include <algorithm>
#include <sstream>

#include "shared/text/json_form.h"
#include "shared/text/number_text.h"

namespace polyphony {
namespace {

constexpr HfFate kUsed = HfFate::used, kIgnored = HfFate::ignored, kNoted = HfFate::noted,
                 kRefused = HfFate::refused;
constexpr const char* kExperts =
    "mixtral qwen3_moe qwen3_vl_moe_text qwen3_omni_moe_text qwen3_next qwen3_5_moe_text "
    "deepseek_v2 deepseek_v3 "
    "kimi_k2 kimi_vl gpt_oss";
constexpr const char* kQwen2 = "qwen2 qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text";
constexpr const char* kDeepSeek = "deepseek_v2 deepseek_v3 kimi_k2 kimi_vl";
constexpr const char* kDelta = "qwen3_next qwen3_5_text qwen3_5_moe_text";
constexpr const char* kTowers =
    "qwen2_vl qwen2_vl_vision qwen2_5_vl qwen2_5_vl_vision qwen3_vl qwen3_vl_vision qwen3_vl_moe "
    "qwen3_vl_moe_vision qwen3_5 qwen3_5_vision qwen3_5_moe qwen3_5_moe_vision "
    "qwen3_omni_moe_vision_encoder";
constexpr const char* kThirdTower =
    "qwen3_vl qwen3_vl_vision qwen3_vl_moe qwen3_vl_moe_vision qwen3_5 qwen3_5_vision qwen3_5_moe "
    "qwen3_5_moe_vision qwen3_omni_moe_vision_encoder";
constexpr const char* kSecondTower = "qwen2_vl qwen2_vl_vision";
constexpr const char* kWindowTower = "qwen2_5_vl qwen2_5_vl_vision";
constexpr const char* kSquares =
    "clip_vision_model siglip_vision_model siglip2_vision_model intern_vit_6b internvl_vision "
    "pixtral moonvit idefics3_vision smolvlm_vision";

// Rows of single families first, then rows shared by all.
constexpr HfKeys kTable[] = {
    // DeepSeek.
    {"kv_lora_rank q_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim n_shared_experts "
     "routed_scaling_factor moe_layer_freq topk_method scoring_func n_group topk_group "
     "num_nextn_predict_layers first_k_dense_replace",
     kDeepSeek, kUsed, ""},
    {"qk_head_dim head_dim num_key_value_heads", kDeepSeek, kIgnored, "follows from other keys"},
    {"rope_interleave", kDeepSeek, kIgnored,
     "only permutes rows of matrices, which are initialized at random"},
    {"aux_loss_alpha seq_aux", kDeepSeek, kNoted,
     "the load-balancing loss is omitted: set \"balance_weight\" to add one per sample", "0 false"},
    {"attention_bias mlp_bias", kDeepSeek, kRefused,
     "latent attention has no biases in this program", "false"},
    {"hidden_act", kDeepSeek, kUsed, ""},
    // Qwen3-Next and Qwen3.5: the gated delta rule.
    {"linear_conv_kernel_dim linear_key_head_dim linear_value_head_dim linear_num_key_heads "
     "linear_num_value_heads full_attention_interval partial_rotary_factor attn_output_gate "
     "shared_expert_intermediate_size",
     kDelta, kUsed, ""},
    {"mamba_ssm_dtype", kDelta, kIgnored, "the scenario sets the precision"},
    {"mtp_num_hidden_layers mtp_use_dedicated_embeddings", kDelta, kNoted,
     "the multi-token-prediction layers are omitted", "0 false"},
    // Gemma 3.
    {"hidden_activation sliding_window sliding_window_pattern _sliding_window_pattern "
     "rope_local_base_freq query_pre_attn_scalar",
     "gemma3_text", kUsed, ""},
    {"hidden_act", "gemma3_text", kIgnored, "hidden_activation is used instead"},
    {"use_bidirectional_attention", "gemma3_text", kRefused, "attention is causal in this program",
     "false"},
    {"cache_implementation", "gemma3_text", kIgnored, "concerns generation only"},
    // GPT-OSS.
    {"swiglu_limit sliding_window full_attention_interval", "gpt_oss", kUsed, ""},
    {"swiglu_alpha", "gpt_oss", kRefused, "only gates σ(1.702 g) are supported", "1.702"},
    {"attention_bias", "gpt_oss", kRefused, "attention has biases in this program", "true"},
    {"hidden_act experts_per_token initial_context_length", "gpt_oss", kIgnored,
     "the model's code does not read it"},
    // LFM2.
    {"block_auto_adjust_ff_dim block_ff_dim block_ffn_dim_multiplier block_multiple_of "
     "conv_L_cache conv_bias full_attn_idxs norm_eps tie_embedding",
     "lfm2", kUsed, ""},
    {"block_dim block_norm_eps block_use_swiglu block_mlp_init_scale block_out_init_scale "
     "block_use_xavier_init conv_dim conv_dim_out conv_use_xavier_init num_heads theta use_pos_enc",
     "lfm2", kIgnored, "the model's code does not read it"},
    // Windows.
    {"use_sliding_window sliding_window max_window_layers", kQwen2, kUsed, ""},
    {"use_sliding_window sliding_window max_window_layers", "qwen3 qwen3_vl_text", kUsed, ""},
    {"use_sliding_window sliding_window", "qwen3_moe qwen3_vl_moe_text qwen3_omni_moe_text", kUsed,
     ""},
    {"max_window_layers", "qwen3_moe qwen3_vl_moe_text qwen3_omni_moe_text", kIgnored,
     "every block has the window"},
    {"intermediate_size shared_expert_intermediate_size", "qwen3_omni_moe_text", kIgnored,
     "every block has experts, none that all tokens share"},
    {"sliding_window", "mistral mixtral phi3", kUsed, ""},
    // Models without biases, or with biases that their code fixes.
    {"attention_bias mlp_bias", kQwen2, kRefused, "the model has biases of q, k and v only",
     "false"},
    {"original_max_position_embeddings", "phi3", kIgnored, "the note on RoPE scaling covers it"},
    {"bias", "internlm2", kRefused, "the model has no biases", "false"},
    {"attention_bias mlp_bias", "mistral mixtral phi3 lfm2", kRefused, "the model has no biases",
     "false"},
    {"mlp_bias",
     "qwen3 qwen3_vl_text qwen3_moe qwen3_vl_moe_text qwen3_omni_moe_text qwen3_next qwen3_5_text "
     "qwen3_5_moe_text gemma3_text gpt_oss",
     kRefused, "the model's feed-forward part has no biases", "false"},
    // Experts.
    {"num_local_experts num_experts n_routed_experts num_experts_per_tok moe_intermediate_size "
     "decoder_sparse_step mlp_only_layers norm_topk_prob router_aux_loss_coef",
     kExperts, kUsed, ""},
    {"output_router_logits", kExperts, kIgnored, "the note on router_aux_loss_coef covers it"},
    {"router_jitter_noise", kExperts, kNoted, "router noise is omitted", "0"},
    // Every language model.
    {"model_type num_hidden_layers hidden_size intermediate_size num_attention_heads "
     "num_key_value_heads head_dim vocab_size hidden_act rms_norm_eps tie_word_embeddings "
     "layer_types rope_theta rope_scaling rope_parameters attention_bias mlp_bias",
     "language", kUsed, ""},
    {"partial_rotary_factor", "language", kRefused, "all of a head is rotated in this program",
     "1"},
    {"attn_logit_softcapping final_logit_softcapping embedding_multiplier residual_multiplier "
     "attention_multiplier logits_scaling logit_scale",
     "language", kRefused, "rows, scores and logits are not scaled or capped in this program", "1"},
    {"max_position_embeddings", "language", kIgnored, "there is no position table"},
    {"vision_config audio_config text_config *_seq_length vision_feature_*", "language", kIgnored,
     "concerns another module"},
    // Vision.
    {"depth num_heads in_channels in_chans patch_size temporal_patch_size hidden_act", kTowers,
     kUsed, ""},
    {"embed_dim mlp_ratio", kSecondTower, kUsed, ""},
    {"hidden_size intermediate_size window_size fullatt_block_indexes", kWindowTower, kUsed, ""},
    {"spatial_merge_size", kTowers, kUsed, ""},
    {"hidden_size intermediate_size deepstack_visual_indexes", kThirdTower, kUsed, ""},
    {"num_position_embeddings", kThirdTower, kIgnored,
     "the note on the omitted position table covers it"},
    {"merge_kernel_size", "moonvit", kUsed, ""},
    {"init_pos_emb_*", "moonvit", kIgnored, "the note on the omitted position table covers it"},
    {"max_image_size size", "idefics3_vision smolvlm_vision", kIgnored,
     "concerns the preparation of images"},
    {"tie_word_embeddings", "idefics3_vision smolvlm_vision", kIgnored, "concerns another module"},
    {"hidden_size out_hidden_size spatial_patch_size", kTowers, kIgnored, "concerns the projector"},
    {"tokens_per_second", kTowers, kIgnored, "concerns videos only"},
    {"rope_parameters rope_theta", kTowers, kUsed, ""},
    {"rope_parameters rope_theta", "pixtral", kUsed, ""},
    {"num_hidden_layers hidden_size num_attention_heads intermediate_size image_size patch_size "
     "num_channels hidden_act layer_norm_eps",
     kSquares, kUsed, ""},
    {"head_dim", "pixtral", kIgnored, "follows from other keys"},
    {"projection_dim", "clip_vision_model", kIgnored, "concerns parts outside the vision tower"},
    {"vision_use_head num_patches", "siglip_vision_model siglip2_vision_model", kUsed, ""},
    {"qkv_bias qk_normalization norm_type initializer_factor", "intern_vit_6b", kUsed, ""},
    {"attention_bias use_qk_norm norm_type layer_scale_init_value use_mean_pooling",
     "internvl_vision", kUsed, ""},
    {"use_absolute_position_embeddings", "internvl_vision", kRefused,
     "positions have a table in this program", "true"},
    {"use_mask_token", "internvl_vision", kIgnored, "no patches are masked in training"},
    // Whisper's encoder.
    {"d_model encoder_layers encoder_attention_heads encoder_ffn_dim num_mel_bins "
     "max_source_positions activation_function",
     "audio", kUsed, ""},
    {"decoder_* vocab_size max_target_positions num_hidden_layers tie_word_embeddings "
     "median_filter_width scale_embedding use_weighted_layer_sum classifier_proj_size "
     "*suppress_tokens "
     "alignment_heads lang_ids task_to_id",
     "audio", kIgnored, "concerns parts outside the encoder"},
    {"n_window n_window_infer conv_chunksize downsample_hidden_size",
     "qwen3_omni_moe_audio_encoder", kIgnored, "the notes on convolutions and windows cover it"},
    {"output_dim", "qwen3_omni_moe_audio_encoder", kIgnored, "concerns the projector"},
    {"apply_spec_augment", "audio", kNoted, "masking of frames is omitted", "false"},
    {"mask_*", "audio", kIgnored, "the note on apply_spec_augment covers it"},
    {"encoder_layerdrop", "audio", kNoted, "layer dropout is omitted", "0"},
    // Every configuration.
    {"model_type", "any", kUsed, ""},
    {"*dropout* drop_path_rate resid_pdrop embd_pdrop attn_pdrop", "any", kNoted,
     "dropout is omitted", "0"},
    {"initializer_range initializer_factor init_std", "any", kIgnored,
     "this program has its own initialization (shared/chunk/parameters.h)"},
    {"*_token_id *_token_ids *_token_index *_token_index_list", "any", kIgnored,
     "the data set defines the tokens, and samples have no padding"},
    {"_name_or_path name_or_path _commit_hash architectures auto_map transformers_version "
     "id2label label2id num_labels problem_type finetuning_task tokenizer_class prefix "
     "task_specific_params",
     "any", kIgnored, "concerns files and classifiers"},
    {"dtype torch_dtype use_bfloat16 quantization_config", "any", kIgnored,
     "the scenario sets the precision"},
    {"return_dict output_attentions output_hidden_states output_scores return_dict_in_generate "
     "use_cache is_encoder_decoder is_decoder add_cross_attention cross_attention_hidden_size "
     "tie_encoder_decoder max_length min_length do_sample early_stopping num_beams "
     "num_beam_groups diversity_penalty temperature top_k top_p typical_p repetition_penalty "
     "length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids "
     "num_return_sequences remove_invalid_values exponential_decay_length_penalty "
     "suppress_tokens begin_suppress_tokens generation_config",
     "any", kIgnored, "concerns what is returned and generated"},
    {"chunk_size_feed_forward pretraining_tp ep_size torchscript pruned_heads tf_legacy_loss "
     "use_flash_attn _attn_implementation* attn_implementation _flash_attn_2_enabled "
     "gradient_checkpointing unsloth_*",
     "any", kIgnored, "changes how, but not what is computed"},
};

// Keys of a composite configuration, next to its parts.
constexpr HfKeys kWhole[] = {
    {"vision_feature_layer vision_feature_select_strategy", "vision", kUsed, ""},
    {"downsample_ratio ps_version select_layer", "vision", kNoted,
     "the scenario's projector sets how rows are merged and selected", "0.5 v2 -1"},
};

std::vector<std::string> words(const char* text) {
  std::istringstream stream(text);
  std::vector<std::string> list;
  for (std::string word; stream >> word;) list.push_back(word);
  return list;
}

bool matches(const std::string& pattern, const std::string& key) {
  const bool front = pattern.starts_with('*'), back = pattern.ends_with('*');
  const std::string middle =
      pattern.substr(front ? 1 : 0, pattern.size() - (front ? 1 : 0) - (back ? 1 : 0));
  if (front && back) return key.find(middle) != std::string::npos;
  if (front) return key.ends_with(middle);
  return back ? key.starts_with(middle) : key == pattern;
}

bool holds(const HfKeys& row, const std::string& type, ModuleKind kind, const std::string& key) {
  const std::vector<std::string> types = words(row.types), keys = words(row.keys);
  const bool of_type = std::any_of(types.begin(), types.end(), [&](const std::string& word) {
    return word == "any" || word == name(kind) || word == type;
  });
  return of_type && std::any_of(keys.begin(), keys.end(),
                                [&](const std::string& word) { return matches(word, key); });
}

bool equals(const JsonValue& value, const std::string& plain) {
  if (value.is_text()) return value.text() == plain;
  if (value.is_boolean()) return plain == (value.boolean() ? "true" : "false");
  return value.is_number() && number_of(plain) == value.number();
}

// Applies a row to the key's value: adds a note, throws InputError, or does nothing.
void apply(const HfKeys& row, const JsonValue& config, const std::string& key,
           std::vector<std::string>& notes) {
  if ((row.fate != kNoted && row.fate != kRefused) || !config.has(key)) return;
  const JsonValue value = config.at(key);
  const std::vector<std::string> plain = words(row.plain);
  if (std::any_of(plain.begin(), plain.end(),
                  [&](const std::string& word) { return equals(value, word); }))
    return;
  if (row.fate == kRefused)
    value.refuse("\"" + key + "\": " + value.dump() + " is not supported",
                 std::string(row.about) + ": \"" + key + "\": " + plain.front());
  notes.push_back("\"" + key + "\": " + row.about);
}

}  // namespace

const HfKeys* find_hf_key(const std::string& type, ModuleKind kind, const std::string& key) {
  const auto* const row = std::find_if(std::begin(kTable), std::end(kTable),
                                       [&](const HfKeys& r) { return holds(r, type, kind, key); });
  return row == std::end(kTable) ? nullptr : row;
}

std::vector<std::string> check_hf_keys(const JsonValue& config, const std::string& type,
                                       ModuleKind kind) {
  std::vector<std::string> notes, unknown;
  for (const std::string& key : config.keys()) {
    if (const HfKeys* row = find_hf_key(type, kind, key))
      apply(*row, config, key, notes);
    else if (config.has(key))
      unknown.push_back("\"" + key + "\"");
  }
  if (!unknown.empty()) notes.push_back("unknown keys, ignored: " + joined(unknown));
  return notes;
}

std::vector<std::string> check_hf_whole(const JsonValue& whole, ModuleKind kind) {
  std::vector<std::string> notes;
  for (const HfKeys& row : kWhole)
    for (const std::string& key : whole.keys())
      if (holds(row, "", kind, key)) apply(row, whole, key, notes);
  return notes;
}

}  // namespace polyphony
