// Published language models with blocks of several kinds or with other kinds of attention: latent
// attention, dense blocks before blocks with experts, sliding windows, linear attention, short
// convolutions.
#include <algorithm>

#include "shared/model/presets.h"

namespace polyphony {
namespace {

constexpr const char* kScaling = "RoPE scaling for long contexts is not modeled";
constexpr const char* kSelection =
    "the load-balancing biases of expert selection stay constant: set \"balance_weight\" for a "
    "load-balancing loss instead";
constexpr const char* kPredicted = "the multi-token-prediction layers are omitted";

// Returns a module with RMSNorm, no biases, and a gated feed-forward part.
Module stack(int layers, int hidden, int heads, int kv_heads, int head_dim, int ffn, int vocab,
             double rope_theta) {
  Module m;
  m.kind = ModuleKind::language;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.head_dim = head_dim;
  m.ffn = ffn;
  m.gated = true;
  m.vocab = vocab;
  m.rope_theta = rope_theta;
  m.norm_epsilon = 1e-6;
  return m;
}

struct Routing {
  int experts, per_token, ffn, shared_ffn, dense_blocks;
};
Module add_experts(Module m, Routing routing) {
  m.experts = routing.experts;
  m.experts_per_token = routing.per_token;
  m.expert_ffn = routing.ffn;
  m.shared_ffn = routing.shared_ffn;
  m.dense_blocks = routing.dense_blocks;
  if (routing.dense_blocks == 0) m.ffn = 0;
  return m;
}

// Adds DeepSeek's latent attention (key/value rank 512, heads of 128 + 64) and experts.
Module latent(Module m, int query_rank, Routing routing, double routed_scale) {
  m.key_value_rank = 512;
  m.query_rank = query_rank;
  m.rotary_dim = 64;
  m.value_dim = 128;
  m = add_experts(std::move(m), routing);
  m.routed_scale = routed_scale;
  return m;
}
Module by_sigmoids(Module m, int groups = 0, int chosen = 0) {
  m.router_scores = RouterScores::sigmoid;
  m.expert_groups = groups;
  m.groups_per_token = chosen;
  m.choice_bias = true;
  return m;
}

Module with_epsilon(Module m, double epsilon) {
  m.norm_epsilon = epsilon;
  return m;
}

Module gpt_oss(int layers, int experts) {
  Module m =
      add_experts(stack(layers, 2880, 64, 8, 64, 0, 201088, 150000), {experts, 4, 2880, 0, 0});
  m.attention_bias = m.expert_bias = m.attention_sinks = true;
  m.activation = Activation::clamped;
  m.mixers = {Mixer::window, Mixer::full};
  m.sliding_window = 128;
  m.norm_epsilon = 1e-5;
  return m;
}

// `factor`: of the rotary frequencies in blocks with full attention; 0: unchanged.
Module gemma3(Module m, int window, double factor) {
  m.tied = m.qk_norm = m.post_norms = m.scaled_embedding = true;
  if (factor > 0) m.rope_scaling = RopeScaling::linear;
  m.rope_factor = factor;
  m.activation = Activation::gelu;
  m.mixers = std::vector<Mixer>(6, Mixer::window);
  m.mixers.back() = Mixer::full;
  m.sliding_window = window;
  m.local_rope_theta = 1e4;
  return m;
}

// Three blocks of linear attention alternate with one block of gated full attention.
Module gated_delta(Module m, int value_heads) {
  m.qk_norm = m.attention_gate = true;
  m.rotary_dim = m.head_dim / 4;
  m.mixers = std::vector<Mixer>(4, Mixer::linear);
  m.mixers.back() = Mixer::full;
  m.linear_key_heads = 16;
  m.linear_value_heads = value_heads;
  m.linear_head_dim = 128;
  m.linear_conv = 4;
  m.shared_gate = m.shared_ffn > 0;
  return m;
}

// Short convolutions in all blocks except those of `attention`.
Module lfm2(Module m, const std::vector<int>& attention) {
  m.tied = m.qk_norm = true;
  m.mixers.assign(static_cast<std::size_t>(m.layers), Mixer::convolution);
  for (const int block : attention) m.mixers[static_cast<std::size_t>(block)] = Mixer::full;
  m.short_conv = 3;
  m.norm_epsilon = 1e-5;
  return m;
}

}  // namespace

// Published counts: totals of the safetensors files on Hugging Face, without quantization scales
// and multi-token-prediction layers. Kimi K2: arXiv 2507.20534, three digits. Gemma 3: arXiv
// 2503.19786 table 1, in millions. LFM2: the model cards. `beyond`: less the biases of expert
// selection, which DeepSeek-V3's total leaves out.
std::vector<ModelPreset> mixed_presets() {
  const char* const deepseek = "Hugging Face config.json of deepseek-ai/*";
  const char* const moonshot = "Hugging Face config.json of moonshotai/*";
  const char* const openai = "Hugging Face config.json of openai/gpt-oss-*; its model card";
  const char* const google = "Hugging Face config.json of google/gemma-3-*";
  const char* const qwen = "Hugging Face config.json of Qwen/Qwen3-Next-*, Qwen/Qwen3.5-*";
  const char* const liquid = "Hugging Face config.json and model card of LiquidAI/LFM2-*";
  const std::vector<int> sixth{2, 5, 8, 10, 12, 14};
  const std::vector<std::string> routed{kScaling, kSelection, kPredicted}, gemma;
  const auto qwen3 = [&](Module m, int value_heads, Routing routing) {
    return gated_delta(routing.experts > 0 ? add_experts(std::move(m), routing) : std::move(m),
                       value_heads);
  };
  return {
      {"deepseek-v3",
       by_sigmoids(latent(stack(61, 7168, 128, 128, 128, 18432, 129280, 1e4), 1536,
                          {256, 8, 2048, 2048, 3}, 2.5),
                   8, 4),
       {671'026'404'352, -58 * 256},
       deepseek,
       routed},
      {"deepseek-v2-lite",
       latent(stack(27, 2048, 16, 16, 128, 10944, 102400, 1e4), 0, {64, 6, 1408, 2816, 1}, 1),
       {15'706'484'224},
       deepseek,
       {kScaling, "the weights of a token's experts are normalized to sum to 1"}},
      {"moonlight-16b-a3b",
       with_epsilon(by_sigmoids(latent(stack(27, 2048, 16, 16, 128, 11264, 163840, 5e4), 0,
                                       {64, 6, 1408, 2816, 1}, 2.446)),
                    1e-5),
       {15'960'111'936, 0, 1e-6},
       moonshot,
       {kSelection}},
      {"kimi-k2",
       by_sigmoids(latent(stack(61, 7168, 64, 64, 128, 18432, 163840, 5e4), 1536,
                          {384, 8, 2048, 2048, 1}, 2.827)),
       {1'040'000'000'000, 0, 0.02},
       moonshot,
       {kScaling, kSelection}},
      {"gpt-oss-20b", gpt_oss(24, 32), {20'914'757'184}, openai, {kScaling}},
      {"gpt-oss-120b", gpt_oss(36, 128), {116'829'156'672}, openai, {kScaling}},
      {"gemma-3-1b",
       gemma3(stack(26, 1152, 4, 1, 256, 6912, 262144, 1e6), 512, 0),
       {999'885'952},
       google,
       gemma},
      {"gemma-3-4b",
       gemma3(stack(34, 2560, 8, 4, 256, 10240, 262208, 1e6), 1024, 8),
       {3'884'000'000, 0, 0.002},
       google,
       gemma},
      {"gemma-3-12b",
       gemma3(stack(48, 3840, 16, 8, 256, 15360, 262208, 1e6), 1024, 8),
       {11'771'000'000, 0, 0.002},
       google,
       gemma},
      {"gemma-3-27b",
       gemma3(stack(62, 5376, 32, 16, 128, 21504, 262208, 1e6), 1024, 8),
       {27'016'000'000, 0, 0.002},
       google,
       {"attention scores are divided by √head_dim, not by √168"}},
      {"qwen3-next-80b-a3b",
       qwen3(stack(48, 2048, 16, 2, 256, 0, 151936, 1e7), 32, {512, 10, 512, 512, 0}),
       {79'674'391'296},
       qwen,
       {kPredicted}},
      {"qwen3.5-27b",
       qwen3(stack(64, 5120, 24, 4, 256, 17408, 248320, 1e7), 48, {}),
       {26'895'998'464},
       qwen,
       {kPredicted}},
      {"qwen3.5-35b-a3b",
       qwen3(stack(40, 2048, 16, 2, 256, 0, 248320, 1e7), 32, {256, 8, 512, 512, 0}),
       {34'660'610'688},
       qwen,
       {kPredicted}},
      {"qwen3.5-397b-a17b",
       qwen3(stack(60, 4096, 32, 2, 256, 0, 248320, 1e7), 64, {512, 10, 1024, 1024, 0}),
       {397'000'000'000, 0, 0.002},
       qwen,
       {kPredicted}},
      {"lfm2-350m",
       lfm2(stack(16, 1024, 16, 8, 64, 4608, 65536, 1e6), sixth),
       {354'483'968},
       liquid,
       {}},
      {"lfm2-700m",
       lfm2(stack(16, 1536, 24, 8, 64, 6912, 65536, 1e6), sixth),
       {742'489'344},
       liquid,
       {}},
      {"lfm2-1.2b",
       lfm2(stack(16, 2048, 32, 8, 64, 8192, 65536, 1e6), sixth),
       {1'170'340'608},
       liquid,
       {}},
      {"lfm2-2.6b",
       lfm2(stack(30, 2048, 32, 8, 64, 10752, 65536, 1e6), {2, 5, 9, 13, 17, 21, 24, 27}),
       {2'569'272'320},
       liquid,
       {}},
  };
}

}  // namespace polyphony
