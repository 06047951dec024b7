#include "shared/presets.h"

#include "shared/parameters.h"

namespace polyphony {
namespace {

struct Stack {
  int layers, hidden, heads, kv_heads, head_dim, ffn;
};

ModelPreset vision(const char* name, Stack stack, int patch, int image_size, double parameters,
                   const char* source, std::vector<std::string> notes) {
  ModelPreset preset{name, {}, parameters, source, std::move(notes)};
  preset.module.kind = ModuleKind::vision;
  preset.module.layers = stack.layers;
  preset.module.hidden = stack.hidden;
  preset.module.heads = stack.heads;
  preset.module.kv_heads = stack.kv_heads;
  preset.module.head_dim = stack.head_dim;
  preset.module.ffn = stack.ffn;
  preset.module.attention_bias = true;
  preset.module.patch = patch;
  preset.module.image_size = image_size;
  return preset;
}

struct Words {
  int vocab;
  bool tied;
  bool gated;
  double rope_theta;
};

ModelPreset language(const char* name, Stack stack, Words words, double parameters,
                     const char* source, std::vector<std::string> notes) {
  ModelPreset preset{name, {}, parameters, source, std::move(notes)};
  preset.module.kind = ModuleKind::language;
  preset.module.layers = stack.layers;
  preset.module.hidden = stack.hidden;
  preset.module.heads = stack.heads;
  preset.module.kv_heads = stack.kv_heads;
  preset.module.head_dim = stack.head_dim;
  preset.module.ffn = stack.ffn;
  preset.module.gated = words.gated;
  preset.module.vocab = words.vocab;
  preset.module.tied = words.tied;
  preset.module.rope_theta = words.rope_theta;
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

constexpr const char* kClassToken = "the class token is left out: one token less per image";
constexpr const char* kQuickGelu = "quick-GELU runs as GELU";
constexpr const char* kQueryKeyNorm = "the norms of queries and keys are left out";
constexpr const char* kNoBias = "linear layers have biases here";
constexpr const char* kPostNorm = "norms stand before attention and feed-forward here, not after";
constexpr const char* kRmsNorm = "RMSNorm runs as LayerNorm";
constexpr const char* kQkvBias = "the bias on queries, keys and values is left out";
constexpr const char* kRopeScaling =
    "the scaling of rotary frequencies for long contexts is left out";
constexpr const char* kWindow =
    "sliding-window attention (4096 tokens) runs as full causal attention";

std::vector<ModelPreset> make_vision_presets() {
  const char* const clip = "mlfoundations/open_clip model_configs/ViT-L-14.json";
  const char* const intern =
      "Hugging Face config.json of OpenGVLab/InternViT-*; counts from the V1-2 model card";
  const char* const eva = "LLaVA-VL/LLaVA-NeXT eva_clip/model_configs/EVA-CLIP-*.json";
  const std::vector<std::string> intern_notes = {kClassToken, kQueryKeyNorm, kNoBias, kRmsNorm};
  const std::vector<std::string> eva_notes = {kClassToken, kRmsNorm, kNoBias};
  return {
      vision("clip-vit-l-14", {24, 1024, 16, 16, 64, 4096}, 14, 224, 0.302e9, clip,
             {kClassToken, kQuickGelu}),
      vision("clip-vit-l-14-336", {24, 1024, 16, 16, 64, 4096}, 14, 336, 0.302e9, clip,
             {kClassToken, kQuickGelu}),
      // 384 is not a multiple of 14: the model drops the last 6 pixels, 27·14 = 378.
      vision("siglip-so400m-14", {27, 1152, 16, 16, 72, 4304}, 14, 378, 0.411e9,
             "google-research/big_vision models/vit.py decode_variant",
             {"384 pixels are cut to the 378 that whole patches cover"}),
      vision("internvit-300m", {24, 1024, 16, 16, 64, 4096}, 14, 448, 0.302e9, intern,
             {kClassToken}),
      vision("internvit-6b", {45, 3200, 25, 25, 128, 12800}, 14, 448, 5.54e9, intern, intern_notes),
      vision("internvit-6b-224", {48, 3200, 25, 25, 128, 12800}, 14, 224, 5.903e9, intern,
             intern_notes),
      vision("qwen2-vl-vision", {32, 1280, 16, 16, 80, 5120}, 14, 448, 0.629e9,
             "huggingface/transformers configuration_qwen2_vl.py",
             {"temporal patches and rotary positions are left out: one learned position per patch "
              "of a still image",
              kQuickGelu}),
      vision("eva2-clip-e", {63, 1792, 16, 16, 112, 15360}, 14, 224, 4.28e9,
             "Hugging Face config.json of THUDM/cogvlm2-video-llama3-chat",
             {kClassToken, kPostNorm}),
      vision("eva-clip-8b", {32, 4096, 32, 32, 128, 20480}, 14, 224, 7.52e9, eva, eva_notes),
      vision("eva-clip-18b", {48, 5120, 40, 40, 128, 25600}, 14, 224, 17.6e9, eva,
             {kClassToken, kPostNorm, kRmsNorm, kNoBias}),
      vision(
          "vit-22b", {48, 6144, 48, 48, 128, 24576}, 14, 224, 21.74e9, "arXiv 2302.05442",
          {"attention and feed-forward run one after the other, not in parallel", kQueryKeyNorm}),
  };
}

std::vector<ModelPreset> make_language_presets() {
  const char* const llama = "Hugging Face config.json of meta-llama/*";
  const char* const qwen = "Hugging Face config.json of Qwen/Qwen2.5-*";
  const char* const gpt = "arXiv 2205.05198 table 3; calculon-ai/calculon models/*.json";
  return {
      language("llama-3.2-1b", {16, 2048, 32, 8, 64, 8192}, {128256, true, true, 5e5}, 1.236e9,
               llama, {kRopeScaling}),
      language("llama-3.2-3b", {28, 3072, 24, 8, 128, 8192}, {128256, true, true, 5e5}, 3.213e9,
               llama, {kRopeScaling}),
      language("llama-3-8b", {32, 4096, 32, 8, 128, 14336}, {128256, false, true, 5e5}, 8.03e9,
               llama, {}),
      language("llama-3.1-8b", {32, 4096, 32, 8, 128, 14336}, {128256, false, true, 5e5}, 8.03e9,
               llama, {kRopeScaling}),
      language("llama-3-70b", {80, 8192, 64, 8, 128, 28672}, {128256, false, true, 5e5}, 70.55e9,
               llama, {}),
      language("llama-3.1-70b", {80, 8192, 64, 8, 128, 28672}, {128256, false, true, 5e5}, 70.55e9,
               llama, {kRopeScaling}),
      language("mistral-7b", {32, 4096, 32, 8, 128, 14336}, {32000, false, true, 1e4}, 7.24e9,
               "NVIDIA-NeMo/Megatron-Bridge mistral_provider.py", {kWindow}),
      language("qwen2.5-7b", {28, 3584, 28, 4, 128, 18944}, {152064, false, true, 1e6}, 7.62e9,
               qwen, {kQkvBias}),
      language("qwen2.5-32b", {64, 5120, 40, 8, 128, 27648}, {152064, false, true, 1e6}, 32.76e9,
               qwen, {kQkvBias}),
      language("qwen2.5-72b", {80, 8192, 64, 8, 128, 29568}, {152064, false, true, 1e6}, 72.70e9,
               qwen, {kQkvBias}),
      with_experts(language("mixtral-8x7b", {32, 4096, 32, 8, 128, 0}, {32000, false, true, 1e6},
                            46.70e9, "Hugging Face config.json of mistralai/Mixtral-8x7B-v0.1", {}),
                   {8, 2, 14336}),
      with_experts(
          language("qwen3-30b-a3b", {48, 2048, 32, 4, 128, 0}, {151936, false, true, 1e6}, 30.53e9,
                   "Hugging Face config.json of Qwen/Qwen3-30B-A3B", {kQueryKeyNorm}),
          {128, 8, 768}),
      language("gpt-22b", {48, 6144, 64, 64, 96, 24576}, {51200, true, false, 1e4}, 22.06e9, gpt,
               {}),
      language("gpt-175b", {96, 12288, 96, 96, 128, 49152}, {51200, true, false, 1e4}, 174.6e9, gpt,
               {}),
  };
}

}  // namespace

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> presets = [] {
    std::vector<ModelPreset> all = make_vision_presets();
    const std::vector<ModelPreset> language_presets = make_language_presets();
    all.insert(all.end(), language_presets.begin(), language_presets.end());
    const std::vector<ModelPreset> diffusion = diffusion_presets();
    all.insert(all.end(), diffusion.begin(), diffusion.end());
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

double matrix_parameters(const Module& module) {
  const double hidden = module.hidden, head_dim = module.head_dim;
  const double attention = 2 * hidden * head_dim * (module.heads + module.kv_heads);
  const double width =
      module.experts == 0
          ? module.ffn
          : static_cast<double>(module.experts) * module.expert_ffn + module.shared_ffn;
  const double feed_forward = (module.gated ? 3 : 2) * hidden * width + hidden * module.experts;
  const double embeddings =
      module.kind == ModuleKind::language ? (module.tied ? 1 : 2) * hidden * module.vocab : 0;
  const double modulation = module.modulation * (kTimeFeatures + 6 * hidden);
  const double across =
      module.condition > 0 ? 2 * (hidden + module.condition) * head_dim * module.heads : 0;
  return module.layers * (attention + feed_forward + modulation + across) + embeddings;
}

}  // namespace polyphony
