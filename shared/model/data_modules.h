// What data sets need to know of the model they feed: which module takes images, audio and latents,
// the patches of an image, and how images and audio shrink on their way into the sequence.
#pragma once

#include <cmath>
#include <cstdint>

#include "shared/model/model.h"

namespace polyphony {

// Null for a model of text alone.
inline const Module* vision_module(const Model& model) {
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::vision) return &module;
  return nullptr;
}
// Null for a model that generates no latents.
inline const Module* diffusion_module(const Model& model) {
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::diffusion) return &module;
  return nullptr;
}
// Patches along one side become cells of merge × merge, tokens of audio runs of merge; 1 without a
// projector.
inline std::int32_t merge_of(const Model& model, ModuleKind source = ModuleKind::vision) {
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::projector && module.source == source) return module.merge;
  return 1;
}
// Of an image of full size.
inline std::int32_t patches_of(const Module& vision) {
  if (vision.abstract.is) return vision.abstract.tokens;
  const std::int32_t side = vision.image_size / vision.patch;
  return side * side;
}
inline bool is_square(std::int32_t patches) {
  const auto side = std::llround(std::sqrt(static_cast<double>(patches)));
  return patches > 0 && side * side == patches;
}
// Null for a model without an audio encoder.
inline const Module* audio_module(const Model& model) {
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::audio) return &module;
  return nullptr;
}

}  // namespace polyphony
