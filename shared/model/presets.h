// Published models by name, as modules: dimensions with their source, checked against the published
// parameter count.
//   parameter_count(module) + beyond = published · (1 ± tolerance)
//   `beyond` counts parameters of the published model that the module does not have (negative:
//   parameters that only the module has). `notes` list other differences; answers repeat them.
// Source: the model's own configuration file, named in each row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/model/model.h"

namespace polyphony {

struct ParameterCount {
  std::int64_t published = 0, beyond = 0;
  double tolerance = 0;  // relative; for counts published in a few digits
};
struct ModelPreset {
  std::string name;  // "llama-3.1-70b"
  Module module;     // without a name
  ParameterCount count;
  std::string source;
  std::vector<std::string> notes;
};

const std::vector<ModelPreset>& model_presets();
// The parts of model_presets(): vision and audio encoders (shared/model/encoder_presets.cpp),
// diffusion transformers (shared/model/diffusion_presets.cpp), and language models whose blocks
// differ (shared/model/mixed_presets.cpp).
std::vector<ModelPreset> mixed_presets();
std::vector<ModelPreset> encoder_presets();
std::vector<ModelPreset> diffusion_presets();
// Returns the names of one kind, in table order.
std::vector<std::string> preset_names(ModuleKind kind);
// Returns the preset, or null if there is none of that name.
const ModelPreset* find_preset(const std::string& name);

}  // namespace polyphony
