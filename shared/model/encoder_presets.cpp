// The vision and audio encoders of shared/model/presets.h.
#include "shared/model/presets.h"

namespace polyphony {
namespace {

struct EncoderStack {
  int layers, hidden, heads, ffn;
};

ModelPreset encoder(const char* name, ModuleKind kind, EncoderStack stack, ParameterCount count,
                    const char* source, std::vector<std::string> notes) {
  ModelPreset preset{name, {}, count, source, std::move(notes)};
  Module& m = preset.module;
  m.kind = kind;
  m.layers = stack.layers;
  m.hidden = stack.hidden;
  m.heads = m.kv_heads = stack.heads;
  m.head_dim = stack.hidden / stack.heads;
  m.ffn = stack.ffn;
  m.attention_bias = m.mlp_bias = true;
  m.norm = Norm::layer;
  return preset;
}

struct Image {
  int patch, image_size;
  bool class_token;
};
ModelPreset vision(const char* name, EncoderStack stack, Image image, ParameterCount count,
                   const char* source, std::vector<std::string> notes) {
  ModelPreset preset = encoder(name, ModuleKind::vision, stack, count, source, std::move(notes));
  preset.module.patch = image.patch;
  preset.module.image_size = image.image_size;
  preset.module.class_token = image.class_token;
  return preset;
}
ModelPreset audio(const char* name, EncoderStack stack, int mel_bins, ParameterCount count,
                  const char* source, std::vector<std::string> notes) {
  ModelPreset preset = encoder(name, ModuleKind::audio, stack, count, source, std::move(notes));
  preset.module.mel_bins = mel_bins;
  preset.module.audio_tokens = 1500;  // tokens of a 30 s clip
  return preset;
}

ModelPreset with(ModelPreset preset, void (*change)(Module&)) {
  change(preset.module);
  return preset;
}
void rms_without_attention_bias(Module& m) {
  m.norm = Norm::rms;
  m.attention_bias = false;
}
void small_epsilon(Module& m) { m.norm_epsilon = 1e-6; }
// The initial scales: initializer_factor of the configurations.
void intern(Module& m, double initial_scale) {
  small_epsilon(m);
  m.final_norm = false;
  m.layer_scale = initial_scale;
}
void intern_300m(Module& m) { intern(m, 1); }
void intern_6b(Module& m) {
  intern(m, 0.1);
  rms_without_attention_bias(m);
  m.qk_norm = true;
}
void clip(Module& m) {
  m.gelu = Gelu::quick;
  m.patch_bias = false;
}
void siglip(Module& m) {
  m.gelu = Gelu::tanh;
  small_epsilon(m);
}
void qwen2_vl(Module& m) {
  m.rotary = true;
  m.patch_bias = false;
  m.gelu = Gelu::quick;
  small_epsilon(m);
}
void qwen2_5_vl(Module& m) {
  m.rotary = m.gated = true;
  m.patch_bias = false;
  m.norm = Norm::rms;
  small_epsilon(m);
  m.window = 8;  // 112 pixels
  m.full_attention_blocks = {7, 15, 23, 31};
}
void vit_22b(Module& m) {
  m.attention_bias = false;
  m.qk_norm = true;
}

constexpr const char* kFirstNorm = "the norm before the first block is omitted";
constexpr const char* kHeadNorm =
    "queries and keys are normalized per head, not over all heads together";
constexpr const char* kOutBias = "the bias of the attention output is omitted";
constexpr const char* kPostNorm = "norms come before attention and feed-forward, not after";
constexpr const char* kTemporal = "temporal patches are omitted: images only, no video";
constexpr const char* kKeyBias =
    "keys have a bias in this program, which does not affect any output";
constexpr const char* kPoolHead = "the attention pooling after the last norm is omitted";

}  // namespace

std::vector<ModelPreset> encoder_presets() {
  const char* const open_clip = "mlfoundations/open_clip model_configs/ViT-L-14.json";
  const char* const intern =
      "Hugging Face config.json of OpenGVLab/InternViT-*; counts from the V1-2 model card";
  const char* const eva =
      "LLaVA-VL/LLaVA-NeXT eva_clip/model_configs/EVA-CLIP-*.json; counts from arXiv 2402.04252";
  const char* const vit = "arXiv 2302.05442 table 1";
  const char* const whisper = "Hugging Face config.json of openai/whisper-large-v3";
  const std::vector<std::string> clip_notes = {kFirstNorm};
  const std::vector<std::string> intern_notes = {kHeadNorm, kOutBias};
  // What CLIP has beyond the module: the first norm.
  const std::int64_t clip_beyond = 2 * 1024;
  // What SigLIP has beyond the module: its pooling head (a probe, one attention of width 1152, a
  // norm, a feed-forward part).
  const std::int64_t pool =
      1152 + 4 * (1152 * 1152 + 1152) + 2 * 1152 + 2 * 1152 * 4304 + 4304 + 1152;
  // What Qwen's vision towers have beyond the module: the second frame of a patch, and the
  // merger, 5120 to 5120 to 3584.
  const std::int64_t second_frame = 1280 * 3 * 14 * 14;
  const std::int64_t merger = 5120 * 5120 + 5120 + 5120 * 3584 + 3584;
  return {
      with(vision("clip-vit-l-14", {24, 1024, 16, 4096}, {14, 224, true},
                  {303'179'776, clip_beyond}, open_clip, clip_notes),
           clip),
      with(vision("clip-vit-l-14-336", {24, 1024, 16, 4096}, {14, 336, true},
                  {303'507'456, clip_beyond}, open_clip, clip_notes),
           clip),
      // 384 is not a multiple of 14: the model drops the last 6 pixels, 27·14 = 378.
      with(vision("siglip-so400m-14", {27, 1152, 16, 4304}, {14, 378, false}, {428'225'600, pool},
                  "google-research/big_vision models/vit.py decode_variant",
                  {"384 pixels are cut to the 378 that whole patches cover", kPoolHead}),
           siglip),
      with(vision("internvit-300m", {24, 1024, 16, 4096}, {14, 448, true}, {304'000'000, 0, 0.001},
                  intern, {}),
           intern_300m),
      with(vision("internvit-6b", {45, 3200, 25, 12800}, {14, 448, true}, {5'540'000'000, 0, 0.001},
                  intern, intern_notes),
           intern_6b),
      with(vision("internvit-6b-224", {48, 3200, 25, 12800}, {14, 224, true},
                  {5'903'000'000, 0, 0.001}, intern, intern_notes),
           intern_6b),
      // Published: the parameters of the 7B models, 8,291,375,616 and 8,292,166,656, less
      // 7,615,616,512 of the language module.
      with(vision("qwen2-vl-vision", {32, 1280, 16, 5120}, {14, 448, false},
                  {675'759'104, second_frame + merger},
                  "huggingface/transformers configuration_qwen2_vl.py", {kTemporal}),
           qwen2_vl),
      with(vision("qwen2.5-vl-vision", {32, 1280, 16, 3420}, {14, 448, false},
                  {676'550'144, second_frame + merger},
                  "huggingface/transformers configuration_qwen2_5_vl.py; arXiv 2502.13923 table 1",
                  {kTemporal}),
           qwen2_5_vl),
      // 63 of the 64 blocks of EVA-02-CLIP-E, 4.4B.
      vision("eva2-clip-e", {63, 1792, 16, 15360}, {14, 224, true}, {4'400'000'000, 0, 0.03},
             "Hugging Face config.json of THUDM/cogvlm2-video-llama3-chat; count from arXiv "
             "2303.15389",
             {kPostNorm}),
      with(vision("eva-clip-8b", {32, 4096, 32, 20480}, {14, 224, true}, {7'500'000'000, 0, 0.01},
                  eva, {kOutBias}),
           rms_without_attention_bias),
      with(vision("eva-clip-18b", {48, 5120, 40, 25600}, {14, 224, true}, {17'500'000'000, 0, 0.01},
                  eva, {kPostNorm, kOutBias}),
           rms_without_attention_bias),
      // The published count of ViT-e includes a pooling head and a classifier.
      vision("vit-e", {56, 1792, 16, 15360}, {14, 224, false}, {3'926'000'000, 0, 0.04}, vit,
             {kPoolHead}),
      with(vision("vit-22b", {48, 6144, 48, 24576}, {14, 224, false}, {21'743'000'000, 0, 0.001},
                  vit,
                  {"attention and feed-forward run one after the other, not in parallel", kOutBias,
                   kPoolHead}),
           vit_22b),
      // The 1,543,490,560 of the whole model, less the decoder's 906,521,600 (embedding 51866·1280,
      // 448 positions, 32 blocks of two attentions) and 1500 fixed positions. Our module has key
      // biases in addition.
      audio("whisper-large-v3", {32, 1280, 20, 5120}, 128, {635'048'960, -32 * 1280}, whisper,
            {kKeyBias}),
      // The first convolution has 80 instead of 128 input features.
      audio("whisper-large-v2", {32, 1280, 20, 5120}, 80, {635'048'960 - 3 * 48 * 1280, -32 * 1280},
            whisper, {kKeyBias}),
  };
}

}  // namespace polyphony
