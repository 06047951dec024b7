#include "shared/export/export_config_json.h"

#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/kernels/lora.h"

namespace polyphony {

const char* torch_name(const std::string& format) {
  if (format == "F64") return "float64";
  if (format == "BF16") return "bfloat16";
  return format == "F16" ? "float16" : "float32";
}

namespace {

using OrderedJson = nlohmann::ordered_json;

std::vector<const char*> parts_of(ModuleKind kind) {
  if (kind == ModuleKind::vision) return {"vision_config"};
  if (kind == ModuleKind::audio) return {"audio_config"};
  return {"text_config", "llm_config", "language_config"};
}

void set_format(OrderedJson& config, const std::string& format) {
  // Newer files say "dtype"; both are read.
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = torch_name(format);
  for (const char* part :
       {"text_config", "llm_config", "language_config", "vision_config", "audio_config"})
    if (config.contains(part) && config[part].is_object())
      for (const char* key : {"dtype", "torch_dtype"})
        if (config[part].contains(key)) config[part][key] = torch_name(format);
  config.erase("quantization_config");
}

}  // namespace

std::string exported_config(const std::string& text, const std::string& file, ModuleKind part,
                            bool whole, const std::string& format) {
  OrderedJson config = OrderedJson::parse(text, nullptr, false, /*ignore_comments=*/true);
  if (!config.is_object())
    throw InputError(file, "", "is not a JSON object", "restore the configuration");
  if (!whole)
    for (const char* name : parts_of(part))
      if (config.contains(name) && config[name].is_object()) {
        // A part without a model type of its own has that of the whole.
        OrderedJson own = config[name];
        if (!own.contains("model_type")) own["model_type"] = config["model_type"];
        const char* const tied = "tie_word_embeddings";
        if (!own.contains(tied) && config.contains(tied)) own[tied] = config[tied];
        config = own;
        break;
      }
  set_format(config, format);
  return config.dump(2) + "\n";
}

bool has_part(const std::string& text, ModuleKind kind) {
  const OrderedJson config = OrderedJson::parse(text, nullptr, false, /*ignore_comments=*/true);
  if (!config.is_object() || kind == ModuleKind::projector) return false;
  for (const char* name : parts_of(kind))
    if (config.contains(name) && config[name].is_object()) return true;
  return false;
}

std::string projector_config(const std::string& format) {
  const OrderedJson config = {{"model_type", "llava"},
                              {"projector_hidden_act", "gelu"},
                              {"multimodal_projector_bias", true},
                              {"dtype", torch_name(format)}};
  return config.dump(2) + "\n";
}

std::string adapter_config(const Module& module, const std::vector<std::string>& targets,
                           const std::string& base) {
  OrderedJson config = {
      {"peft_type", "LORA"},
      {"task_type", module.kind == ModuleKind::language ? OrderedJson("CAUSAL_LM") : OrderedJson()},
      {"base_model_name_or_path", base.empty() ? OrderedJson() : OrderedJson(base)},
      {"r", module.lora_rank},
      {"lora_alpha", low_rank_scale(module) * module.lora_rank},
      {"lora_dropout", 0.0},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"init_lora_weights", true},
      {"inference_mode", true},
      {"use_rslora", false},
      {"target_modules", targets}};
  return config.dump(2) + "\n";
}

}  // namespace polyphony
