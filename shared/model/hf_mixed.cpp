// The families of language configurations, and the readers for families with blocks of several
// kinds or with other kinds of attention (shared/model/hf_parts.h).
#include <algorithm>
#include <cmath>

#include "shared/model/hf_parts.h"

namespace polyphony {

double number_or(const JsonValue& config, const char* key, double otherwise) {
  if (!config.has(key)) return otherwise;
  config.at(key).check(number_form(0, 1e12));
  return config.at(key).number();
}

namespace {

// Reads an integer; a null value or a missing key means 0 in these files.
int whole_or_none(const JsonValue& config, const char* key) {
  if (!config.has(key) || !config.at(key).is_number()) return 0;
  config.at(key).check(integer_form(0, kMostWidth));
  return static_cast<int>(config.at(key).integer());
}

// Returns the shortest run of blocks that the stack repeats at least twice; else the whole stack.
std::vector<Mixer> period(const std::vector<Mixer>& stack) {
  for (std::size_t length = 1; 2 * length <= stack.size(); ++length) {
    bool repeats = true;
    for (std::size_t i = length; i < stack.size() && repeats; ++i)
      repeats = stack[i] == stack[i - length];
    if (repeats) return {stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(length)};
  }
  return stack;
}

void read_mixers(const JsonValue& config, HfModule& result, const char* interval, int usual,
                 Mixer others) {
  Module& m = result.module;
  if (config.has("layer_types")) return read_layer_types(config, m);
  m.mixers = every(whole_or(config, interval, kMostLayers, usual), others);
}

// Reads the window; the default is that of Qwen and Mistral.
void use_windows(const JsonValue& config, Module& m) {
  m.sliding_window = whole_or(config, "sliding_window", kMostTokens, 4096);
}

// All blocks have the window that the file states; Mistral's files may omit it, meaning 4,096 rows.
void read_all_windows(const JsonValue& config, const std::string& type, HfModule& result) {
  Module& m = result.module;
  const std::vector<std::string> keys = config.keys();
  const bool absent = std::find(keys.begin(), keys.end(), "sliding_window") == keys.end();
  if (!config.has("sliding_window") && !(absent && type == "mistral")) return;  // null: no window
  m.mixers = {Mixer::window};
  use_windows(config, m);
}
void read_windows_if_used(const JsonValue& config, const std::string& type, HfModule& result) {
  if (flag_or(config, "use_sliding_window", false)) read_all_windows(config, type, result);
}

// Blocks from max_window_layers on have windows, if the file enables windows.
void read_late_windows(const JsonValue& config, const std::string& /*type*/, HfModule& result) {
  Module& m = result.module;
  if (config.has("layer_types")) {
    read_layer_types(config, m);
  } else if (flag_or(config, "use_sliding_window", false)) {
    const char* const first = "max_window_layers";
    const int full = std::min(config.has(first) ? whole_or_none(config, first) : 28, m.layers);
    m.mixers.assign(static_cast<std::size_t>(m.layers), Mixer::window);
    std::fill_n(m.mixers.begin(), full, Mixer::full);
    m.mixers = period(m.mixers);
  }
  if (std::find(m.mixers.begin(), m.mixers.end(), Mixer::window) != m.mixers.end())
    use_windows(config, m);
  else
    m.mixers.clear();
}

void read_latent(const JsonValue& config, HfModule& result) {
  Module& m = result.module;
  m.key_value_rank = whole(config, "kv_lora_rank", kMostWidth);
  m.query_rank = whole_or_none(config, "q_lora_rank");
  m.head_dim = whole(config, "qk_nope_head_dim", kMostWidth);
  m.rotary_dim = whole(config, "qk_rope_head_dim", kMostWidth);
  m.value_dim = whole(config, "v_head_dim", kMostWidth);
  m.kv_heads = m.heads;
  if (!flag_or(config, "rope_interleave", true))
    result.deviations.emplace_back("rotary rows are in pairs, not in halves");
  if (m.norm_epsilon !=
      1e-6)  // the default of DeepseekV3RMSNorm, which both norms inside the attention use
    result.deviate("the norms inside latent attention use the same epsilon as the other norms");
}

void read_deepseek_routing(const JsonValue& config, const std::string& type, HfModule& result) {
  Module& m = result.module;
  if (m.experts == 0) return;
  const bool second = type == "deepseek_v2";
  if (second)
    result.deviations.emplace_back("the weights of a token's experts are normalized to sum to 1");
  m.shared_ffn = m.expert_ffn * whole_or_none(config, "n_shared_experts");
  m.routed_scale = number_or(config, "routed_scaling_factor", 1);
  if (whole_or(config, "moe_layer_freq", kMostLayers, 1) != 1)
    config.refuse_at("moe_layer_freq", "dense layers between sparse ones are not supported",
                     "dense layers must come before all sparse ones");
  const std::string method = text_or(config, "topk_method", second ? "greedy" : "noaux_tc");
  if (method != "greedy" && method != "noaux_tc")
    config.refuse_at("topk_method", "routing method \"" + method + "\" is not supported",
                     "use \"greedy\" or \"noaux_tc\"");
  if (text_or(config, "scoring_func", second ? "softmax" : "sigmoid") == "sigmoid")
    m.router_scores = RouterScores::sigmoid;
  if (whole_or(config, "n_group", 1 << 16, 1) > 1 && method == "noaux_tc") {
    m.expert_groups = whole(config, "n_group", 1 << 16);
    m.groups_per_token = whole(config, "topk_group", 1 << 16);
  }
  if (method == "noaux_tc") {
    m.choice_bias = true;
    result.notes.emplace_back(
        "the load-balancing biases of expert selection stay constant: set \"balance_weight\" for a "
        "load-balancing loss instead");
  }
  if (whole_or_none(config, "num_nextn_predict_layers") > 0)
    result.notes.emplace_back("the multi-token-prediction layers are omitted");
}

void read_deepseek(const JsonValue& config, const std::string& type, HfModule& result) {
  read_latent(config, result);
  read_deepseek_routing(config, type, result);
}

void read_gemma(const JsonValue& config, const std::string& /*type*/, HfModule& result) {
  Module& m = result.module;
  read_gates(config, "hidden_activation", "gelu_pytorch_tanh", m);
  m.post_norms = true;
  m.sliding_window = whole(config, "sliding_window", kMostTokens);
  if (m.local_rope_theta == 0) m.local_rope_theta = number_or(config, "rope_local_base_freq", 1e4);
  const char* const pattern = "sliding_window_pattern";
  read_mixers(config, result, config.has(pattern) ? pattern : "_sliding_window_pattern", 6,
              Mixer::window);
  m.scaled_embedding = true;
  const double scale = number_or(config, "query_pre_attn_scalar", m.head_dim);
  if (std::abs(scale - m.head_dim) > 0.5)
    result.deviate("attention scores are divided by √head_dim, not by √" +
                   std::to_string(static_cast<int>(scale)));
}

void read_gpt_oss(const JsonValue& config, const std::string& /*type*/, HfModule& result) {
  Module& m = result.module;
  m.attention_bias = m.expert_bias = m.attention_sinks = true;
  m.activation = Activation::clamped;
  if (number_or(config, "swiglu_limit", 7) != 7)
    config.refuse_at("swiglu_limit", "only the limit 7 is supported", "leave the key out");
  m.sliding_window = whole(config, "sliding_window", kMostTokens);
  read_mixers(config, result, "full_attention_interval", 2, Mixer::window);
}

void read_gated_delta(const JsonValue& config, const std::string& /*type*/, HfModule& result) {
  Module& m = result.module;
  m.attention_gate = flag_or(config, "attn_output_gate", true);
  m.linear_key_heads = whole(config, "linear_num_key_heads", kMostWidth);
  m.linear_value_heads = whole(config, "linear_num_value_heads", kMostWidth);
  m.linear_head_dim = whole(config, "linear_key_head_dim", kMostWidth);
  m.linear_conv = whole_or(config, "linear_conv_kernel_dim", 64, 4);
  if (whole(config, "linear_value_head_dim", kMostWidth) != m.linear_head_dim)
    config.refuse_at("linear_value_head_dim", "must equal linear_key_head_dim",
                     "heads with values of another width than keys are not supported");
  const JsonValue rope = config.has("rope_parameters") && config.at("rope_parameters").is_object()
                             ? config.at("rope_parameters")
                             : config;
  const double part =
      number_or(rope, "partial_rotary_factor", number_or(config, "partial_rotary_factor", 0.25));
  m.rotary_dim = static_cast<int>(std::lround(part * m.head_dim));
  if (m.rotary_dim == m.head_dim) m.rotary_dim = 0;
  m.shared_ffn = whole_or_none(config, "shared_expert_intermediate_size");
  if (m.experts == 0) m.shared_ffn = 0;
  read_mixers(config, result, "full_attention_interval", 4, Mixer::linear);
  m.shared_gate = m.shared_ffn > 0;
}

// Early files list the attention blocks, later ones the kind of every block.
void read_convolutions(const JsonValue& config, Module& m) {
  if (config.has("layer_types")) {
    read_layer_types(config, m);
  } else if (config.has("full_attn_idxs")) {
    const JsonValue blocks = config.at("full_attn_idxs");
    blocks.check(list_form(integer_form(0, m.layers - 1), 0, m.layers));
    m.mixers.assign(static_cast<std::size_t>(m.layers), Mixer::convolution);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      m.mixers[static_cast<std::size_t>(blocks.at(i).integer())] = Mixer::full;
    m.mixers = period(m.mixers);
  }
  if (std::find(m.mixers.begin(), m.mixers.end(), Mixer::convolution) != m.mixers.end())
    m.short_conv = whole_or(config, "conv_L_cache", 64, 3);
}

void read_lfm2(const JsonValue& config, const std::string& /*type*/, HfModule& result) {
  Module& m = result.module;
  m.tied = flag_or(config, "tie_embedding", m.tied);
  if (flag_or(config, "conv_bias", false))
    config.refuse_at("conv_bias", "biases of short convolutions are not supported",
                     "published models have none");
  if (flag_or(config, "block_auto_adjust_ff_dim", true)) {  // F: two thirds of the stated width
    const char* const scale = "block_ffn_dim_multiplier";
    const bool scaled = config.has(scale) && config.at(scale).is_number();
    if (scaled) config.at(scale).check(number_form(0.001, 64));
    const int multiple = whole_or(config, "block_multiple_of", kMostWidth, 256),
              least = static_cast<int>((scaled ? config.at(scale).number() : 1) * (2 * m.ffn / 3));
    m.ffn = (least + multiple - 1) / multiple * multiple;
  }
  read_convolutions(config, m);
}

}  // namespace

std::vector<Mixer> every(int interval, Mixer others) {
  std::vector<Mixer> mixers(static_cast<std::size_t>(interval), others);
  mixers.back() = Mixer::full;
  return mixers;
}

void read_layer_types(const JsonValue& config, Module& m) {
  static const std::vector<std::string> names{"full_attention", "sliding_attention",
                                              "linear_attention", "conv"};  // in the order of Mixer
  const JsonValue types = config.at("layer_types");
  types.check(list_form(choice_form(names), m.layers, m.layers));
  std::vector<Mixer> mixers;
  for (std::size_t i = 0; i < types.size(); ++i)
    mixers.push_back(static_cast<Mixer>(std::find(names.begin(), names.end(), types.at(i).text()) -
                                        names.begin()));
  m.mixers = period(mixers);
}

const std::vector<LanguageFamily>& language_families() {
  static const std::vector<LanguageFamily> families = {
      {.types = {"llama", "internlm2"},
       .part = {.layers = 32, .hidden = 4096, .ffn = 11008, .heads = 32, .vocab = 32000}},
      {.types = {"mistral"},
       .part =
           {.layers = 32, .hidden = 4096, .ffn = 14336, .heads = 32, .kv_heads = 8, .vocab = 32000},
       .read = read_all_windows},
      {.types = {"phi3"}, .norm_epsilon = 1e-5, .read = read_all_windows},
      {.types = {"mixtral"}, .rope_theta = 1e6, .norm_epsilon = 1e-5, .read = read_all_windows},
      {.types = {"qwen2"},
       .part = {.layers = 32,
                .hidden = 4096,
                .ffn = 22016,
                .heads = 32,
                .kv_heads = 32,
                .vocab = 151936},
       .qkv_bias = true,
       .read = read_late_windows},
      {.types = {"qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"},
       .rope_theta = 1e6,
       .norm_epsilon = 1e-5,
       .qkv_bias = true,
       .read = read_late_windows},
      {.types = {"qwen3"}, .qk_norm = true, .read = read_late_windows},
      {.types = {"qwen3_vl_text"}, .rope_theta = 5e5, .qk_norm = true, .read = read_late_windows},
      {.types = {"qwen3_moe"}, .qk_norm = true, .read = read_windows_if_used},
      {.types = {"qwen3_omni_moe_text"},
       .rope_theta = 1e6,
       .qk_norm = true,
       .read = read_windows_if_used},
      {.types = {"qwen3_vl_moe_text"},
       .rope_theta = 5e5,
       .qk_norm = true,
       .read = read_windows_if_used},
      {.types = {"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"},
       .qk_norm = true,
       .read = read_gated_delta},
      {.types = {"deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_vl"}, .read = read_deepseek},
      {.types = {"gemma3_text"},  // older files omit default values
       .heads = 8,
       .kv_heads = 4,
       .head_dim = 256,
       .vocab = 262208,
       .tied = true,
       .rope_theta = 1e6,
       .qk_norm = true,
       .read = read_gemma},
      {.types = {"gpt_oss"}, .rope_theta = 1.5e5, .norm_epsilon = 1e-5, .read = read_gpt_oss},
      {.types = {"lfm2"},
       .tied = true,
       .rope_theta = 1e6,
       .norm_epsilon = 1e-5,
       .ffn = "block_ff_dim",
       .qk_norm = true,
       .read = read_lfm2},
  };
  return families;
}

}  // namespace polyphony
