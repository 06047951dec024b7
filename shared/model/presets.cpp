#include "shared/model/presets.h"

namespace polyphony {
namespace {

struct Stack {
  int layers, hidden, heads, kv_heads, head_dim, ffn;
};
struct Words {
  int vocab;
  bool tied;
  double rope_theta;
};

// Llama's architecture: RMSNorm, no biases, a gated feed-forward part.
ModelPreset language(const char* name, Stack stack, Words words, ParameterCount count,
                     const char* source, std::vector<std::string> notes) {
  ModelPreset preset{name, {}, count, source, std::move(notes)};
  Module& m = preset.module;
  m.kind = ModuleKind::language;
  m.layers = stack.layers;
  m.hidden = stack.hidden;
  m.heads = stack.heads;
  m.kv_heads = stack.kv_heads;
  m.head_dim = stack.head_dim;
  m.ffn = stack.ffn;
  m.gated = true;
  m.vocab = words.vocab;
  m.tied = words.tied;
  m.rope_theta = words.rope_theta;
  return preset;
}
ModelPreset qwen2(const char* name, Stack stack, ParameterCount count,
                  std::vector<int> sections = {}) {
  ModelPreset preset =
      language(name, stack, {152064, false, 1e6}, count, "Hugging Face config.json of Qwen/*", {});
  preset.module.qkv_bias = true;
  preset.module.norm_epsilon = 1e-6;
  preset.module.rope_sections = std::move(sections);
  return preset;
}
ModelPreset qwen3(const char* name, Stack stack, bool tied, ParameterCount count) {
  ModelPreset preset = language(name, stack, {151936, tied, 1e6}, count,
                                "Hugging Face config.json of Qwen/Qwen3-*", {});
  preset.module.qk_norm = true;
  preset.module.norm_epsilon = 1e-6;
  return preset;
}
// GPT-3's architecture: LayerNorm, biases, two feed-forward matrices; `beyond`: 2048 learned
// positions.
ModelPreset gpt(const char* name, int layers, int hidden, int heads, ParameterCount count) {
  count.beyond = std::int64_t{2048} * hidden;
  ModelPreset preset =
      language(name, {layers, hidden, heads, heads, hidden / heads, 4 * hidden}, {51200, true, 1e4},
               count, "arXiv 2205.05198 table 3; calculon-ai/calculon models/*.json",
               {"rotary positions instead of learned ones"});
  Module& m = preset.module;
  m.gated = false;
  m.attention_bias = m.mlp_bias = true;
  m.norm = Norm::layer;
  return preset;
}

struct Sparse {
  int experts, experts_per_token, expert_ffn;
};
ModelPreset with_experts(ModelPreset preset, Sparse sparse) {
  preset.module.ffn = 0;
  preset.module.experts = sparse.experts;
  preset.module.experts_per_token = sparse.experts_per_token;
  preset.module.expert_ffn = sparse.expert_ffn;
  return preset;
}

// Llama 3.1's and 3.2's frequencies for 128k tokens.
ModelPreset stretched(ModelPreset preset, double factor) {
  preset.module.rope_scaling = RopeScaling::llama3;
  preset.module.rope_factor = factor;
  preset.module.rope_low_factor = 1;
  preset.module.rope_high_factor = 4;
  preset.module.rope_context = 8192;
  return preset;
}

constexpr const char* kWindow =
    "sliding-window attention (4096 tokens) is replaced by full causal attention";

// Published counts: totals of the safetensors files on Hugging Face. GPT: Narayanan et al., arXiv
// 2104.04473, table 1, four digits (22B: from its name).
std::vector<ModelPreset> language_presets() {
  const char* const llama = "Hugging Face config.json of meta-llama/*";
  const Stack llama_8b{32, 4096, 32, 8, 128, 14336}, llama_70b{80, 8192, 64, 8, 128, 28672};
  const Stack qwen_7b{28, 3584, 28, 4, 128, 18944}, qwen_72b{80, 8192, 64, 8, 128, 29568};
  const Words llama_words{128256, false, 5e5}, llama_tied{128256, true, 5e5};
  const std::vector<int> axes = {16, 24, 24};
  return {
      stretched(language("llama-3.2-1b", {16, 2048, 32, 8, 64, 8192}, llama_tied, {1'235'814'400},
                         llama, {}),
                32),
      stretched(language("llama-3.2-3b", {28, 3072, 24, 8, 128, 8192}, llama_tied, {3'212'749'824},
                         llama, {}),
                32),
      language("llama-3-8b", llama_8b, llama_words, {8'030'261'248}, llama, {}),
      stretched(language("llama-3.1-8b", llama_8b, llama_words, {8'030'261'248}, llama, {}), 8),
      language("llama-3-70b", llama_70b, llama_words, {70'553'706'496}, llama, {}),
      stretched(language("llama-3.1-70b", llama_70b, llama_words, {70'553'706'496}, llama, {}), 8),
      language("mistral-7b", llama_8b, {32000, false, 1e4}, {7'241'732'096},
               "NVIDIA-NeMo/Megatron-Bridge mistral_provider.py", {kWindow}),
      qwen2("qwen2.5-7b", qwen_7b, {7'615'616'512}),
      qwen2("qwen2.5-32b", {64, 5120, 40, 8, 128, 27648}, {32'763'876'352}),
      qwen2("qwen2-72b", qwen_72b, {72'706'203'648}),
      qwen2("qwen2.5-72b", qwen_72b, {72'706'203'648}),
      // The language modules that Qwen2-VL and Qwen2.5-VL share.
      qwen2("qwen2-vl-7b", qwen_7b, {7'615'616'512}, axes),
      qwen2("qwen2-vl-72b", qwen_72b, {72'706'203'648}, axes),
      qwen3("qwen3-0.6b", {28, 1024, 16, 8, 128, 3072}, true, {596'049'920}),
      qwen3("qwen3-4b", {36, 2560, 32, 8, 128, 9728}, true, {4'022'468'096}),
      qwen3("qwen3-8b", {36, 4096, 32, 8, 128, 12288}, false, {8'190'735'360}),
      qwen3("qwen3-14b", {40, 5120, 40, 8, 128, 17408}, false, {14'768'307'200}),
      qwen3("qwen3-32b", {64, 5120, 64, 8, 128, 25600}, false, {32'762'123'264}),
      with_experts(
          language("mixtral-8x7b", {32, 4096, 32, 8, 128, 0}, {32000, false, 1e6}, {46'702'792'704},
                   "Hugging Face config.json of mistralai/Mixtral-8x7B-v0.1", {}),
          {8, 2, 14336}),
      with_experts(qwen3("qwen3-30b-a3b", {48, 2048, 32, 4, 128, 0}, false, {30'532'122'624}),
                   {128, 8, 768}),
      gpt("gpt-22b", 48, 6144, 64, {22'000'000'000, 0, 0.01}),
      gpt("gpt-175b", 96, 12288, 96, {174'600'000'000, 0, 0.0005}),
      gpt("gpt-530b", 105, 20480, 128, {529'600'000'000, 0, 0.0005}),
      gpt("gpt-1t", 128, 25600, 160, {1'008'000'000'000, 0, 0.0005}),
  };
}

}  // namespace

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> presets = [] {
    std::vector<ModelPreset> all = encoder_presets();
    for (const auto& part : {language_presets(), mixed_presets(), diffusion_presets()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return presets;
}

std::vector<std::string> preset_names(ModuleKind kind) {
  std::vector<std::string> names;
  for (const ModelPreset& preset : model_presets())
    if (preset.module.kind == kind) names.push_back(preset.name);
  return names;
}

const ModelPreset* find_preset(const std::string& name) {
  for (const ModelPreset& preset : model_presets())
    if (preset.name == name) return &preset;
  return nullptr;
}

}  // namespace polyphony
