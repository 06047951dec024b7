// Vision and audio configurations (shared/model/hf_config.h).
#include <cmath>

#include "shared/model/hf_parts.h"

namespace polyphony {
namespace {

constexpr int kMostMerge = 64;

Module encoder(ModuleKind kind) {
  Module m;
  m.kind = kind;
  m.attention_bias = m.mlp_bias = true;
  m.norm = Norm::layer;
  return m;
}

// Reads two-axis rotary positions: frequencies for rows and columns share one base.
void read_axial(const JsonValue& config, Module& m) {
  if (config.has("rope_parameters") && config.at("rope_parameters").is_object()) {
    const JsonValue rope = config.at("rope_parameters");
    const std::string type = text_or(rope, "rope_type", "axial");
    if (type != "axial" && type != "default")
      rope.refuse_at("rope_type", "rotary type \"" + type + "\" is not supported for patches",
                     "use \"axial\"");
    m.rope_theta = number_or(rope, "rope_theta", m.rope_theta);
  }
  m.rope_theta = number_or(config, "rope_theta", m.rope_theta);
}

// Values that a part of a composite configuration may omit.
struct SquareImages {
  const char* type;  // how the model type begins
  int layers, hidden, heads, ffn, image_size, patch;
};
constexpr SquareImages kSquareImages[] = {
    {"clip", 12, 768, 12, 3072, 224, 32},      {"siglip", 12, 768, 12, 3072, 224, 16},
    {"pixtral", 24, 1024, 16, 4096, 1024, 16}, {"idefics3", 12, 1152, 16, 3072, 224, 32},
    {"smolvlm", 12, 1152, 16, 3072, 224, 32},  {"moonvit", 27, 1152, 16, 4304, 448, 14}};
SquareImages usual_of(const std::string& type, bool is_part) {
  for (const SquareImages& row : kSquareImages)
    if (is_part && type.starts_with(row.type)) return row;
  return {};
}

// Reads the side of a square: one number, or equal height and width.
int side(const JsonValue& config, const char* key, int usual) {
  if (!config.has(key) && usual > 0) return usual;
  if (!config.has(key) || !config.at(key).is_list()) return whole(config, key, 1 << 16);
  const JsonValue sides = config.at(key);
  sides.check(list_form(integer_form(1, 1 << 16), 2, 2));
  if (sides.at(0).integer() != sides.at(1).integer())
    config.refuse_at(key, "height and width differ", "only squares are supported");
  return static_cast<int>(sides.at(0).integer());
}

void silu_gates(const JsonValue& config, const char* usual, Module& m) {
  read_gates(config, "hidden_act", usual, m);
  if (m.activation != Activation::silu)
    config.refuse("gated activation \"" + text_or(config, "hidden_act", usual) +
                      "\" is not supported in encoders",
                  "use \"hidden_act\": \"silu\"");
}

void read_gelu(const JsonValue& config, const char* key, const char* usual, HfModule& result) {
  const std::string stated = text_or(config, key, usual);
  if (stated == "quick_gelu") {
    result.module.gelu = Gelu::quick;
  } else if (stated == "gelu_pytorch_tanh" || stated == "gelu_new") {
    result.module.gelu = Gelu::tanh;
  } else if (stated != "gelu") {
    config.refuse_at(key, "activation \"" + stated + "\" is not supported", "use gelu");
  }
}

// These towers take images of any size (shared/datasets/native_images.h). Where images have none of
// their own, as synthetic ones, it is 448 pixels unless the scenario sets another.
void read_qwen_tower(const JsonValue& config, const std::string& type, HfModule& result) {
  Module& m = result.module;
  const bool second = type.starts_with("qwen2_vl"), third = type.starts_with("qwen3");
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
  m.norm_epsilon = 1e-6;  // from the models' code
  read_axial(config, m);
  if (!second && !third) {
    m.gated = true;
    m.norm = Norm::rms;
    silu_gates(config, "silu", m);
    const int pixels = whole(config, "window_size", 1 << 16);
    if (pixels % m.patch != 0)
      config.refuse_at("window_size",
                       std::to_string(pixels) + " pixels are not a multiple of patches of " +
                           std::to_string(m.patch),
                       "check that the configuration is complete");
    m.window = pixels / m.patch;
    if (config.has("fullatt_block_indexes")) {
      config.at("fullatt_block_indexes").check(list_form(integer_form(0, kMostLayers)));
      config.read("fullatt_block_indexes", m.full_attention_blocks);
    }
  }
  result.image_size_notes.emplace_back(
      "the configuration has no image size: " + std::to_string(m.image_size) +
      " pixels are assumed where images do not keep their own sizes, set \"image_size\" for "
      "another");
  result.merge = whole_or(config, "spatial_merge_size", kMostMerge, 0);
  m.patch_bias = third;
  if (third) result.deviate("the position table beside the rotary positions is omitted");
  result.notes.emplace_back("temporal patches are omitted: images only, no video");
}

void read_square_images(const JsonValue& config, const std::string& type, bool is_part,
                        HfModule& result) {
  const SquareImages usual = usual_of(type, is_part);
  Module& m = result.module;
  m.layers = whole_or_usual(config, "num_hidden_layers", kMostLayers, usual.layers);
  m.hidden = whole_or_usual(config, "hidden_size", kMostWidth, usual.hidden);
  m.heads = whole_or_usual(config, "num_attention_heads", kMostWidth, usual.heads);
  m.head_dim = divided(config, "hidden_size", m.hidden, m.heads);
  m.ffn = whole_or_usual(config, "intermediate_size", kMostWidth, usual.ffn);
  const bool siglip = type.starts_with("siglip"),
             plain = siglip || type == "idefics3_vision" || type == "smolvlm_vision";
  m.patch = side(config, "patch_size", usual.patch);
  m.image_size = siglip && !config.has("image_size") && config.has("num_patches")
                     ? m.patch * static_cast<int>(
                                     std::lround(std::sqrt(whole(config, "num_patches", 1 << 20))))
                     : side(config, "image_size", usual.image_size);
  m.class_token = !plain && type != "pixtral";
  m.norm_epsilon = epsilon_or(
      config, type.starts_with("clip") || type == "pixtral" || type == "moonvit" ? 1e-5 : 1e-6);
  if (m.patch <= m.image_size && m.image_size % m.patch != 0) {
    const int kept = m.image_size / m.patch * m.patch;
    result.image_size_notes.push_back(std::to_string(m.image_size) + " pixels are cropped to the " +
                                      std::to_string(kept) + " that whole patches cover");
    m.image_size = kept;
  }
  if (siglip && flag_or(config, "vision_use_head", true))
    result.notes.emplace_back("the attention pooling after the last norm is omitted");
  if (type == "clip_vision_model") {
    m.patch_bias = false;
    m.input_norm = true;
    m.final_norm = false;
    result.notes.emplace_back("the norm of the pooled class token is omitted");
  }
}

// Kimi-VL's tower, for images of any size.
void read_moonvit(const JsonValue& config, HfModule& result) {
  Module& m = result.module;
  m.rotary = true;
  m.class_token = false;
  result.deviate("the position table beside the rotary positions is omitted");
  constexpr const char* kMerge = "merge_kernel_size";
  result.merge = config.has(kMerge) ? side(config, kMerge, 2) : 2;
}

// InternViT: configurations of its own code, and those of transformers.
void read_intern(const JsonValue& config, const std::string& type, HfModule& result) {
  Module& m = result.module;
  const bool own = type == "intern_vit_6b";
  m.attention_bias = flag_or(config, own ? "qkv_bias" : "attention_bias", own);
  m.qk_norm = flag_or(config, own ? "qk_normalization" : "use_qk_norm", false);
  const std::string norm = text_or(config, "norm_type", own ? "rms_norm" : "layer_norm");
  if (norm != "rms_norm" && norm != "layer_norm")
    config.refuse_at("norm_type", "unknown norm \"" + norm + "\"", "use rms_norm or layer_norm");
  m.norm = norm == "rms_norm" ? Norm::rms : Norm::layer;
  if (m.qk_norm)
    result.deviate("queries and keys are normalized per head, not over all heads together");
  if (!m.attention_bias) result.deviate("the bias of the attention output is omitted");
  const char* const scale = own ? "initializer_factor" : "layer_scale_init_value";
  m.layer_scale = number_or(config, scale, 0.1);
  if (!(m.layer_scale > 0))
    config.refuse_at(scale, "must be above 0: it is the initial value of the layer scales",
                     "0.1 is usual");
  m.final_norm = !own && !flag_or(config, "use_mean_pooling", true);
}

void read_pixtral(const JsonValue& config, HfModule& result) {
  Module& m = result.module;
  m.norm = Norm::rms;
  m.gated = m.rotary = true;
  m.attention_bias = m.mlp_bias = m.patch_bias = false;
  m.alternating_axes = m.input_norm = true;
  m.final_norm = false;
  read_axial(config, m);
  silu_gates(config, "gelu", m);
}

}  // namespace

void select_llava_rows(const JsonValue& whole, HfModule& result) {
  constexpr const char* kLayer = "vision_feature_layer";
  // From the models' code.
  const bool later = text_or(whole, "model_type", "").starts_with("llava_onevision");
  const int usual = later ? -1 : -2;
  Module& m = result.module;
  if (whole.has(kLayer) && whole.at(kLayer).is_list()) {
    result.deviate("\"vision_feature_layer\": the rows of several blocks are not joined");
    return;
  }
  int layer = usual;
  if (whole.has(kLayer)) {
    whole.at(kLayer).check(integer_form(-kMostLayers, kMostLayers));
    layer = static_cast<int>(whole.at(kLayer).integer());
  }
  // 0 is the embedding, and -1 the last block.
  const int blocks = layer < 0 ? m.layers + 1 + layer : layer;
  if (blocks < 1 || blocks > m.layers)
    whole.refuse_at(kLayer,
                    std::to_string(layer) + " is none of the " + std::to_string(m.layers) +
                        " blocks of the vision module",
                    "check that the configuration is complete");
  if (blocks < m.layers)
    result.notes.push_back("\"vision_feature_layer\": blocks after block " +
                           std::to_string(blocks) + " of " + std::to_string(m.layers) +
                           " are omitted");
  m.layers = blocks;
  m.final_norm = false;
  // "default" drops the first row, whether or not it is that of a class token.
  const bool drops =
      text_or(whole, "vision_feature_select_strategy", later ? "full" : "default") != "full";
  if (m.class_token && !drops)
    result.deviate("\"vision_feature_select_strategy\": the row of the class token is dropped");
  if (!m.class_token && drops)
    result.deviate("\"vision_feature_select_strategy\": the row of the first patch is not dropped");
}

HfModule read_hf_vision(const JsonValue& config, const std::string& type, bool is_part) {
  HfModule result;
  result.module = encoder(ModuleKind::vision);
  if (type.starts_with("qwen2") || type.starts_with("qwen3"))
    read_qwen_tower(config, type, result);
  else
    read_square_images(config, type, is_part, result);
  if (type.starts_with("intern")) read_intern(config, type, result);
  if (type == "pixtral") read_pixtral(config, result);
  if (type == "moonvit") read_moonvit(config, result);
  Module& m = result.module;
  m.kv_heads = m.heads;
  m.channels = whole_or(config, "num_channels", 64,
                        whole_or(config, "in_chans", 64, whole_or(config, "in_channels", 64, 3)));
  if (!m.gated)
    read_gelu(config, "hidden_act",
              type.starts_with("clip") || type.starts_with("qwen2") ? "quick_gelu"
              : type.starts_with("intern")                          ? "gelu"
                                                                    : "gelu_pytorch_tanh",
              result);
  return result;
}

HfModule read_hf_audio(const JsonValue& config, const std::string& type) {
  HfModule result;
  Module& m = result.module = encoder(ModuleKind::audio);
  m.layers = whole(config, "encoder_layers", kMostLayers);
  m.hidden = whole(config, "d_model", kMostWidth);
  m.heads = m.kv_heads = whole(config, "encoder_attention_heads", kMostWidth);
  m.head_dim = divided(config, "d_model", m.hidden, m.heads);
  m.ffn = whole(config, "encoder_ffn_dim", kMostWidth);
  m.mel_bins = whole(config, "num_mel_bins", 1 << 16);
  m.audio_tokens = whole(config, "max_source_positions", kMostWidth);
  read_gelu(config, "activation_function", "gelu", result);
  if (type == "qwen2_audio_encoder")
    result.deviate("pairs of rows are not averaged: each is a token of its own");
  if (type == "qwen3_omni_moe_audio_encoder") {
    result.deviate("two convolutions that halve the frames once stand for three that do so thrice");
    result.deviate("frames attend to all of a clip, not to windows");
  }
  result.notes.emplace_back("keys have a bias in this program, which does not affect any output");
  return result;
}

}  // namespace polyphony
