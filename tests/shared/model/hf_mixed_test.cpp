// Configurations with blocks of several kinds, compared with the presets of the same models.
#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/model/hf_config.h"
#include "shared/model/presets.h"

using namespace polyphony;

namespace {

constexpr const char* kDeepSeek = R"({"model_type": "deepseek_v3", "hidden_size": 7168,
  "intermediate_size": 18432, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
  "vocab_size": 129280, "rope_theta": 10000, "rope_scaling": {"type": "yarn", "factor": 40}, "n_routed_experts": 256,
  "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 3, "moe_layer_freq": 1,
  "moe_intermediate_size": 2048, "n_group": 8, "topk_group": 4, "topk_method": "noaux_tc", "scoring_func": "sigmoid",
  "norm_topk_prob": true, "routed_scaling_factor": 2.5, "q_lora_rank": 1536, "kv_lora_rank": 512,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_nextn_predict_layers": 1,
  "tie_word_embeddings": false})";
constexpr const char* kMoonlight = R"({"model_type": "deepseek_v3", "hidden_size": 2048,
  "intermediate_size": 11264, "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
  "vocab_size": 163840, "rope_theta": 50000, "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2,
  "first_k_dense_replace": 1, "moe_layer_freq": 1, "moe_intermediate_size": 1408, "n_group": 1, "topk_group": 1,
  "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": true, "routed_scaling_factor": 2.446,
  "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "rms_norm_eps": 1e-05})";
constexpr const char* kGemma =
    R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
  "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024,
  "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}})";
constexpr const char* kOss =
    R"({"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
  "num_hidden_layers": 4, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
  "attention_bias": true, "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128, "rope_theta": 150000,
  "rope_scaling": {"rope_type": "yarn", "factor": 32.0}, "swiglu_limit": 7.0,
  "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]})";
constexpr const char* kQwen =
    R"({"model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5120,
  "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 151936,
  "rope_theta": 10000000, "partial_rotary_factor": 0.25, "full_attention_interval": 4, "linear_num_key_heads": 16,
  "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
  "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
  "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": []})";

constexpr const char* kLiquid =
    R"({"model_type": "lfm2", "block_auto_adjust_ff_dim": true, "block_dim": 1536, "block_ff_dim": 10240,
  "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256, "conv_L_cache": 3, "conv_bias": false, "conv_dim": 1536,
  "full_attn_idxs": [2, 5, 8, 10, 12, 14], "hidden_size": 1536, "norm_eps": 1e-05, "num_attention_heads": 24,
  "num_heads": 24, "num_hidden_layers": 16, "num_key_value_heads": 8, "rope_theta": 1000000.0, "vocab_size": 65536})";
constexpr const char* kLiquidLater =
    R"({"model_type": "lfm2", "block_auto_adjust_ff_dim": false, "block_ff_dim": 10752, "block_multiple_of": 256,
  "conv_L_cache": 3, "conv_bias": false, "hidden_size": 2048, "intermediate_size": 10752, "num_attention_heads": 32,
  "num_hidden_layers": 30, "num_key_value_heads": 8, "tie_embedding": true,
  "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}, "vocab_size": 65536, "layer_types": ["conv",
  "conv", "full_attention", "conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv",
  "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv",
  "conv", "full_attention", "conv", "conv", "full_attention", "conv", "conv"]})";

Module read(const char* text) {
  return read_hf_config(text, "config.json", ModuleKind::language).module;
}
Module preset(const char* name) { return find_preset(name)->module; }

}  // namespace

TEST_CASE("configurations with blocks of several kinds equal their presets") {
  CHECK(read(kDeepSeek) == preset("deepseek-v3"));
  CHECK(read(kMoonlight) == preset("moonlight-16b-a3b"));
  CHECK(read(kGemma) == preset("gemma-3-4b"));
  CHECK(read(kQwen) == preset("qwen3-next-80b-a3b"));
  Module oss = read(kOss);
  oss.layers = 24;
  CHECK(oss == preset("gpt-oss-20b"));
}

TEST_CASE("LFM2's early and late configurations, and the width of their feed-forward parts") {
  CHECK(read(kLiquid) == preset("lfm2-700m"));
  CHECK(read(kLiquidLater) == preset("lfm2-2.6b"));
  const auto width = [](const std::string& from, const std::string& to) {
    std::string text = kLiquid;
    text.replace(text.find(from), from.size(), to);
    return read(text.c_str()).ffn;
  };
  // ⌊2·F/3⌋, times the multiplier, up to the next multiple: 6826.
  CHECK(width("10240", "6656") == 4608);
  CHECK(width("10240", "12288") == 8192);
  CHECK(width("\"block_multiple_of\": 256", "\"block_multiple_of\": 10") == 6830);
  CHECK(width("multiplier\": 1.0", "multiplier\": 0.5") == 3584);
  CHECK(width("multiplier\": 1.0", "multiplier\": null") == 6912);
  CHECK(width("adjust_ff_dim\": true", "adjust_ff_dim\": false") == 10240);
  CHECK(width("block_ff_dim\": 10240", "intermediate_size\": 12288") == 8192);
  std::string biased = kLiquid;
  biased.replace(biased.find("\"conv_bias\": false"), 18, "\"conv_bias\": true");
  try {
    read(biased.c_str());
    FAIL("read");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("/conv_bias: biases of short convolutions") !=
          std::string::npos);
  }
}

TEST_CASE("contexts that were extended by YaRN") {
  const auto with = [](std::string config, const std::string& before, const std::string& after) {
    config.replace(config.find(before), before.size(), after);
    return read(config.c_str());
  };
  // As published: openai/gpt-oss-20b and deepseek-ai/DeepSeek-V3.
  const Module oss = with(
      kOss, R"({"rope_type": "yarn", "factor": 32.0})",
      R"({"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
          "original_max_position_embeddings": 4096})");
  CHECK((oss.rope_scaling == RopeScaling::yarn && oss.rope_context == 4096 && !oss.rope_whole));
  CHECK((oss.rope_factor == 32 && oss.rope_high_factor == 32 && oss.rope_low_factor == 1));
  CHECK(oss.rope_attention == doctest::Approx(1.34657359));  // 0.1 ln 32 + 1
  CHECK(oss.score_factor == 1);
  const Module deep =
      with(kDeepSeek, R"({"type": "yarn", "factor": 40})",
           R"({"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
          "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096})");
  CHECK((deep.rope_scaling == RopeScaling::yarn && deep.rope_whole));
  CHECK(deep.rope_attention == 1);
  CHECK(deep.score_factor == doctest::Approx(1.87385422));  // (0.1 ln 40 + 1)²
  // moonshotai/Kimi-K2-Instruct: the change begins and ends at the same number of turns.
  const Module kimi =
      with(kDeepSeek, R"({"type": "yarn", "factor": 40})",
           R"({"type": "yarn", "factor": 32, "beta_fast": 1.0, "beta_slow": 1.0, "mscale": 1.0,
          "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096})");
  CHECK((kimi.rope_high_factor == 1 && kimi.rope_low_factor == 1));
}

TEST_CASE("values that a Module cannot express are rejected by name") {
  std::string grouped = kDeepSeek;
  grouped.replace(grouped.find("noaux_tc"), 8, "group_limited_greedy");
  try {
    read(grouped.c_str());
    FAIL("read");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("/topk_method: routing method \"group_limited_greedy\"") !=
          std::string::npos);
  }
  std::string exact = kGemma;
  exact.replace(exact.find("\"sliding_window\""), 0, "\"hidden_activation\": \"gelu\", ");
  try {
    read(exact.c_str());
    FAIL("read");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("/hidden_activation: gated activation \"gelu\"") !=
          std::string::npos);
  }
}
