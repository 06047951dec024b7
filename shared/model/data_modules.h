// What data sets need to know about the model they feed: which module takes images, audio and
// latents, how many patches an image has, and how many tokens images and audio become in the
// sequence.
#pragma once

#include <cmath>
#include <cstdint>

#include "shared/model/model.h"

namespace polyphony {

// Returns the vision encoder, or null if the model has none.
inline const Module* vision_module(const Model& model) {
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::vision) return &module;
  return nullptr;
}
// Returns the diffusion module, or null if the model has none.
inline const Module* diffusion_module(const Model& model) {
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::diffusion) return &module;
  return nullptr;
}
// Returns the projector's merge factor: it joins merge × merge patches of an image, or `merge`
// consecutive tokens of audio, into one row. 1 without a projector.
inline std::int32_t merge_of(const Model& model, ModuleKind source = ModuleKind::vision) {
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::projector && module.source == source) return module.merge;
  return 1;
}
// Returns the number of patches of an image of full size.
inline std::int32_t patches_of(const Module& vision) {
  if (vision.abstract.is) return vision.abstract.tokens;
  const std::int32_t side = vision.image_size / vision.patch;
  return side * side;
}
inline bool is_square(std::int32_t patches) {
  const auto side = std::llround(std::sqrt(static_cast<double>(patches)));
  return patches > 0 && side * side == patches;
}
// Returns the audio encoder, or null if the model has none.
inline const Module* audio_module(const Model& model) {
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::audio) return &module;
  return nullptr;
}

}  // namespace polyphony
