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
// Attention, feed-forward and embedding matrices of a module, from its dimensions alone.
//   block = 2·H·A·D (3 with a gate) + 2·H·K·D + g·H·F, g = 3 when gated, else 2; with E experts of
//   width X and one of width S that all tokens visit F = E·X + S, and the router's E·H
//   latent attention: H·(Lq + Lk + R) + Lq·A(D + R) + Lk·A(D + Dv) + A·Dv·H (Lq = H when 0, then
//   without H·Lq); linear attention: H·(2(K + V)D + 2V) + V·D·H and the convolution's
//   embeddings V·H, twice unless tied; diffusion block: and R·(256 + 6H), and across 2·H·A·D +
//   2·W·A·D, W the condition's width
double matrix_parameters(const Module& module);

}  // namespace polyphony
