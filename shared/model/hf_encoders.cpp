// Vision and audio configurations (shared/model/hf_config.h).
#include "shared/model/hf_parts.h"

namespace polyphony {
namespace {

Module encoder(ModuleKind kind) {
  Module m;
  m.kind = kind;
  m.attention_bias = m.mlp_bias = true;
  m.norm = Norm::layer;
  return m;
}

// Images of any size; 448 pixels unless the scenario says otherwise.
void read_qwen_tower(const JsonValue& config, const std::string& type, HfModule& result) {
  Module& m = result.module;
  const bool second = type == "qwen2_vl";
  const char* const width = second ? "embed_dim" : "hidden_size";
  m.layers = whole(config, "depth", kMostLayers);
  m.hidden = whole(config, width, kMostWidth);
  m.heads = whole(config, "num_heads", kMostWidth);
  m.head_dim = divided(config, width, m.hidden, m.heads);
  m.ffn = second ? m.hidden * whole_or(config, "mlp_ratio", 64, 4)
                 : whole(config, "intermediate_size", kMostWidth);
  m.patch = whole(config, "patch_size", 1 << 16);
  m.image_size = 448 / m.patch * m.patch;
  m.rotary = true;
  if (!second) {
    m.gated = true;
    m.norm = Norm::rms;
    const int pixels = whole(config, "window_size", 1 << 16);
    if (pixels % m.patch != 0)
      config.refuse_at("window_size",
                       std::to_string(pixels) + " pixels are not a multiple of patches of " +
                           std::to_string(m.patch),
                       "is the configuration complete?");
    m.window = pixels / m.patch;
    if (config.has("fullatt_block_indexes")) {
      config.at("fullatt_block_indexes").check(list_form(integer_form(0, kMostLayers)));
      config.read("fullatt_block_indexes", m.full_attention_blocks);
    }
  }
  result.image_size_notes.emplace_back(
      "the configuration names no image size: " + std::to_string(m.image_size) +
      " pixels, say \"image_size\" for another");
  result.notes.emplace_back("temporal patches are left out: still images");
  result.notes.emplace_back("patches have a bias here");
}

void read_square_images(const JsonValue& config, const std::string& type, HfModule& result) {
  Module& m = result.module;
  m.layers = whole(config, "num_hidden_layers", kMostLayers);
  m.hidden = whole(config, "hidden_size", kMostWidth);
  m.heads = whole(config, "num_attention_heads", kMostWidth);
  m.head_dim = divided(config, "hidden_size", m.hidden, m.heads);
  m.ffn = whole(config, "intermediate_size", kMostWidth);
  m.image_size = whole(config, "image_size", 1 << 16);
  m.patch = whole(config, "patch_size", 1 << 16);
  m.class_token = type != "siglip_vision_model";
  if (m.patch <= m.image_size && m.image_size % m.patch != 0) {
    const int kept = m.image_size / m.patch * m.patch;
    result.image_size_notes.push_back(std::to_string(m.image_size) + " pixels are cut to the " +
                                      std::to_string(kept) + " that whole patches cover");
    m.image_size = kept;
  }
  if (type == "siglip_vision_model")
    result.notes.emplace_back("the attention pooling after the last norm is left out");
  if (type == "clip_vision_model") {
    result.notes.emplace_back("the norm before the first block is left out");
    result.notes.emplace_back("patches have a bias here");
  }
}

void read_intern(const JsonValue& config, HfModule& result) {
  Module& m = result.module;
  m.attention_bias = flag_or(config, "qkv_bias", true);
  m.qk_norm = flag_or(config, "qk_normalization", false);
  const std::string norm = text_or(config, "norm_type", "rms_norm");
  if (norm != "rms_norm" && norm != "layer_norm")
    config.refuse_at("norm_type", "norm \"" + norm + "\" is not known", "rms_norm or layer_norm");
  m.norm = norm == "rms_norm" ? Norm::rms : Norm::layer;
  if (m.qk_norm)
    result.notes.emplace_back("queries and keys are normed head by head, not all heads together");
  if (!m.attention_bias) result.notes.emplace_back("the output of attention has no bias here");
  result.notes.emplace_back("the scales of the blocks' outputs are left out");
}

}  // namespace

HfModule read_hf_vision(const JsonValue& config, const std::string& type) {
  HfModule result;
  result.module = encoder(ModuleKind::vision);
  if (type.starts_with("qwen2"))
    read_qwen_tower(config, type, result);
  else
    read_square_images(config, type, result);
  if (type == "intern_vit_6b") read_intern(config, result);
  Module& m = result.module;
  m.kv_heads = m.heads;
  m.channels = whole_or(config, "num_channels", 64,
                        whole_or(config, "in_chans", 64, whole_or(config, "in_channels", 64, 3)));
  if (text_or(config, "hidden_act", "gelu") == "quick_gelu")
    result.notes.emplace_back("quick-GELU runs as GELU");
  return result;
}

HfModule read_hf_audio(const JsonValue& config) {
  HfModule result;
  Module& m = result.module = encoder(ModuleKind::audio);
  m.layers = whole(config, "encoder_layers", kMostLayers);
  m.hidden = whole(config, "d_model", kMostWidth);
  m.heads = m.kv_heads = whole(config, "encoder_attention_heads", kMostWidth);
  m.head_dim = divided(config, "d_model", m.hidden, m.heads);
  m.ffn = whole(config, "encoder_ffn_dim", kMostWidth);
  m.mel_bins = whole(config, "num_mel_bins", 1 << 16);
  m.audio_tokens = whole(config, "max_source_positions", kMostWidth);
  result.notes.emplace_back("keys have a bias here, which no output depends on");
  return result;
}

}  // namespace polyphony
