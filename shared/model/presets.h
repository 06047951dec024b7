// Published models by name, as modules: dimensions with their source, checked against the published
// parameter count.
//   parameter_count(module) + beyond = published · (1 ± tolerance)
//   `beyond` counts what the published model has besides the module (negative: less); `notes` say
//   in what else it differs; answers repeat them.
// Source: the model's own configuration file, named in each row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/model/model.h"

namespace polyphony {

struct ParameterCount {
  std::int64_t published = 0, beyond = 0;
  double tolerance = 0;  // of a count published in a few digits
};
struct ModelPreset {
  std::string name;  // "llama-3.1-70b"
  Module module;     // without a name
  ParameterCount count;
  std::string source;
  std::vector<std::string> notes;
};

const std::vector<ModelPreset>& model_presets();
// Its parts of vision and audio (shared/model/encoder_presets.cpp), of diffusion
// (shared/model/diffusion_presets.cpp), and of language models whose blocks differ
// (shared/model/mixed_presets.cpp).
std::vector<ModelPreset> mixed_presets();
std::vector<ModelPreset> encoder_presets();
std::vector<ModelPreset> diffusion_presets();
// Of one kind, in table order.
std::vector<std::string> preset_names(ModuleKind kind);
// Nothing when there is no such name.
const ModelPreset* find_preset(const std::string& name);

}  // namespace polyphony
