// Diffusion transformers of shared/model/presets.h.
#include "shared/model/presets.h"

namespace polyphony {
namespace {

struct DiffusionStack {
  int layers, hidden, heads, head_dim, ffn;
};
struct Latent {
  int channels, patch, tokens;
};

ModelPreset diffusion(const char* name, DiffusionStack stack, Latent latent, int modulation,
                      int condition, std::int64_t parameters, const char* source,
                      std::vector<std::string> notes) {
  ModelPreset preset{name, {}, {parameters, 0, 0.01}, source, std::move(notes)};
  preset.module.kind = ModuleKind::diffusion;
  preset.module.layers = stack.layers;
  preset.module.hidden = stack.hidden;
  preset.module.heads = preset.module.kv_heads = stack.heads;
  preset.module.head_dim = stack.head_dim;
  preset.module.ffn = stack.ffn;
  preset.module.attention_bias = true;
  preset.module.latent_channels = latent.channels;
  preset.module.patch = latent.patch;
  preset.module.latent_tokens = latent.tokens;
  preset.module.modulation = modulation;
  preset.module.condition = condition;
  return preset;
}

// A model whose published count is only known from its name.
ModelPreset named(ModelPreset preset) {
  preset.count.tolerance = 0.02;
  return preset;
}

constexpr const char* kGelu = "tanh-GELU is replaced by erf-GELU";
constexpr const char* kOwnModulation =
    "every layer computes its modulation from the time features only, with two matrices of its own";

}  // namespace

// Published parameter counts:
// DiT-XL/2: 675,129,632, of which 1.2e6 embed class labels.
// Wan2.1: 1,418,996,800 and 14,288,491,584. The matrices of their text embedding, H·(4096 + H), are
// omitted, since they belong to the conditioning module: 8.65e6 and 47.2e6 less. All blocks share
// Wan's six-fold modulation, 256·H + H² + 6·H²; the modulation width here gives the same number of
// weights to within 8 %.
std::vector<ModelPreset> diffusion_presets() {
  const std::vector<std::string> wan_notes = {
      "positions of frames, rows and columns are fixed sines and cosines added to the tokens, not "
      "rotary",
      "the norms of queries and keys are omitted",
      "the MLP that embeds text is omitted: keys and values take the conditioning module's width",
      kGelu, kOwnModulation};
  const char* const wan = "Wan-Video/Wan2.1 wan/configs and wan/modules/model.py";
  const std::vector<std::string> dip_notes = {
      "the paper does not state how time enters: a modulation of width 64 in every layer is "
      "assumed, under 1 % of the weights",
      "latents are Movie Gen's at 256 pixels: 16 channels, 8 times smaller in time, height and "
      "width",
      kGelu};
  const char* const dip =
      "arXiv 2504.14145v2 (layers, widths); arXiv 2410.13720 (latents of 16 s at 16 frames a "
      "second)";
  return {
      diffusion("dit-xl-2", {28, 1152, 16, 72, 4608}, {4, 2, 256}, 1152, 0, 675'129'632,
                "facebookresearch/DiT models.py; arXiv 2212.09748 table 1",
                {kOwnModulation,
                 "class labels are omitted; blocks read the conditioning by cross-attention, which "
                 "adds 2·1152·(1152 + width) weights to each",
                 "the variance is not predicted", kGelu}),
      // 81 frames of 480 × 832 pixels: 21 × 30 × 52 patches.
      diffusion("wan2.1-1.3b", {30, 1536, 12, 128, 8960}, {16, 2, 32760}, 64, 1536, 1'410'300'000,
                wan, wan_notes),
      // 81 frames of 720 × 1280 pixels: 21 × 45 × 80 patches.
      diffusion("wan2.1-14b", {40, 5120, 40, 128, 13824}, {16, 2, 75600}, 144, 5120, 14'241'300'000,
                wan, wan_notes),
      // 32 x 16 x 16 patches. Parameter counts are from the names.
      named(diffusion("dip-dit-5b", {28, 3584, 28, 128, 10240}, {16, 2, 8192}, 64, 4096,
                      5'000'000'000, dip, dip_notes)),
      named(diffusion("dip-dit-30b", {48, 6144, 48, 128, 24576}, {16, 2, 8192}, 64, 8192,
                      30'000'000'000, dip, dip_notes)),
  };
}

}  // namespace polyphony
