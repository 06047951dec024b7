#include <algorithm>
#include <cmath>

#include "shared/model/hf_keys.h"
#include "shared/model/hf_parts.h"

namespace polyphony {

int whole(const JsonValue& config, const char* key, std::int64_t most) {
  if (!config.has(key))
    config.refuse(std::string("key \"") + key + "\" is missing",
                  "check that this is the config.json of a supported model");
  config.at(key).check(integer_form(1, most));
  return static_cast<int>(config.at(key).integer());
}
int whole_or(const JsonValue& config, const char* key, std::int64_t most, int otherwise) {
  return config.has(key) ? whole(config, key, most) : otherwise;
}
int whole_or_usual(const JsonValue& config, const char* key, std::int64_t most, int usual) {
  return usual > 0 ? whole_or(config, key, most, usual) : whole(config, key, most);
}
bool flag_or(const JsonValue& config, const char* key, bool otherwise) {
  if (!config.has(key)) return otherwise;
  config.at(key).check(boolean_form());
  return config.at(key).boolean();
}
std::string text_or(const JsonValue& config, const char* key, const std::string& otherwise) {
  if (!config.has(key)) return otherwise;
  config.at(key).check(text_form("llama"));
  return config.at(key).text();
}

int divided(const JsonValue& config, const char* key, int value, int by) {
  if (value % by != 0)
    config.refuse_at(
        key, std::to_string(value) + " is not a multiple of " + std::to_string(by) + " heads",
        "check that the configuration is complete");
  return value / by;
}

const std::vector<std::string>& hf_types(ModuleKind kind) {
  static const std::vector<std::string> language = [] {
    std::vector<std::string> all;
    for (const LanguageFamily& family : language_families())
      all.insert(all.end(), family.types.begin(), family.types.end());
    return all;
  }();
  static const std::vector<std::string> vision = {"clip_vision_model",
                                                  "siglip_vision_model",
                                                  "siglip2_vision_model",
                                                  "intern_vit_6b",
                                                  "internvl_vision",
                                                  "pixtral",
                                                  "qwen2_vl",
                                                  "qwen2_vl_vision",
                                                  "qwen2_5_vl",
                                                  "qwen2_5_vl_vision",
                                                  "qwen3_vl",
                                                  "qwen3_vl_vision",
                                                  "qwen3_vl_moe",
                                                  "qwen3_vl_moe_vision",
                                                  "qwen3_5",
                                                  "qwen3_5_vision",
                                                  "qwen3_5_moe",
                                                  "qwen3_5_moe_vision",
                                                  "qwen3_omni_moe_vision_encoder",
                                                  "moonvit",
                                                  "idefics3_vision",
                                                  "smolvlm_vision"};
  static const std::vector<std::string> audio = {"whisper", "qwen2_audio_encoder",
                                                 "qwen3_omni_moe_audio_encoder"};
  if (kind == ModuleKind::vision) return vision;
  return kind == ModuleKind::audio ? audio : language;
}

namespace {

constexpr const char* kThinker = "thinker_config";

// Returns the part of a composite configuration that describes `kind`, or the whole.
JsonValue part_of(const JsonValue& root, ModuleKind kind) {
  std::vector<std::string> names = {"text_config", "llm_config", "language_config"};
  if (kind == ModuleKind::vision) names = {"vision_config"};
  if (kind == ModuleKind::audio) names = {"audio_config"};
  for (const std::string& name : names)
    if (root.has(name) && root.at(name).is_object()) return root.at(name);
  return root;
}

// Reads how many patches a side the projector joins, where the whole states it and not the encoder:
// InternVL (a ratio of sides), Idefics 3 and SmolVLM, Mistral 3.
void read_whole_merge(const JsonValue& root, HfModule& result) {
  constexpr int kMostMerge = 64;
  if (const double ratio = number_or(root, "downsample_ratio", 0); ratio > 0) {
    result.merge = static_cast<int>(std::lround(1 / ratio));
    if (std::abs(result.merge * ratio - 1) > 1e-6)
      root.refuse_at("downsample_ratio", "is not one over a whole number", "0.5 joins 2x2 patches");
  }
  const std::string type = text_or(root, "model_type", "");
  if (type == "idefics3" || type == "smolvlm")
    result.merge = whole_or(root, "scale_factor", kMostMerge, 2);
  if (type == "mistral3") result.merge = whole_or(root, "spatial_merge_size", kMostMerge, 2);
}

}  // namespace

JsonValue hf_root(const std::string& text, const std::string& file) {
  JsonValue root = JsonValue::parse(text, file);
  if (!root.is_object())
    root.refuse("is not a JSON object", "give the path of a Hugging Face config.json");
  if (root.has(kThinker) && root.at(kThinker).is_object()) return root.at(kThinker);
  return root;
}

bool has_deep_rows(const std::string& model_type) {
  return model_type.starts_with("qwen3_vl") || model_type.starts_with("qwen3_omni");
}

std::string hf_model_type(const std::string& text, const std::string& file, ModuleKind kind) {
  const JsonValue root = hf_root(text, file);
  const std::string whole = text_or(root, "model_type", "");
  const std::string type =
      kind == ModuleKind::projector ? whole : text_or(part_of(root, kind), "model_type", whole);
  if (type.empty())
    root.refuse("key \"model_type\" is missing", "give the path of a Hugging Face config.json");
  return type;
}

HfModule read_hf_config(const std::string& text, const std::string& file, ModuleKind kind) {
  const JsonValue root = hf_root(text, file);
  const JsonValue config = part_of(root, kind);
  const std::vector<std::string>& types = hf_types(kind);
  // A part may lack a model_type of its own (Qwen2-VL's vision_config in older files); then that of
  // the whole applies.
  const std::string type = text_or(config, "model_type", text_or(root, "model_type", ""));
  if (type.empty())
    root.refuse("key \"model_type\" is missing", "give the path of a Hugging Face config.json");
  if (std::find(types.begin(), types.end(), type) == types.end())
    config.refuse_at("model_type",
                     "model type \"" + type + "\" is not a supported " + name(kind) + " module",
                     suggest(type, types) + ", or write the dimensions instead of \"hf\"");
  const std::vector<std::string> notes = check_hf_keys(config, type, kind);
  const bool is_part = config.pointer() != root.pointer();
  HfModule result = kind == ModuleKind::vision  ? read_hf_vision(config, type, is_part)
                    : kind == ModuleKind::audio ? read_hf_audio(config, type)
                                                : read_hf_language(config, type, root);
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  if (kind == ModuleKind::language && !root.pointer().empty())
    result.notes.emplace_back("the thinker alone: what speaks (talker, code2wav) is omitted");
  if (kind == ModuleKind::vision && root.has("mm_tokens_per_image")) {  // Gemma 3
    const int side = result.module.image_size / std::max(1, result.module.patch),
              rows = whole(root, "mm_tokens_per_image", 1 << 20);
    for (int merge = 1; merge <= side; ++merge)
      if (side % merge == 0 && (side / merge) * (side / merge) == rows) result.merge = merge;
  }
  if (kind == ModuleKind::vision) read_whole_merge(root, result);
  if (is_part) {
    if (kind == ModuleKind::vision && text_or(root, "model_type", "").starts_with("llava"))
      select_llava_rows(root, result);
    const std::vector<std::string> of_whole = check_hf_whole(root, kind);
    result.notes.insert(result.notes.end(), of_whole.begin(), of_whole.end());
  }
  return result;
}

}  // namespace polyphony
