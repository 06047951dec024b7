#include "shared/scenario/image_tokens.h"

#include <algorithm>

#include "shared/model/data_modules.h"

namespace polyphony {

ImageGrid image_grid(const Model& model) {
  const Module* vision = vision_module(model);
  if (!vision) return {};
  return {static_cast<std::int32_t>(patches_per_image(model)), std::max(1, vision->patch),
          std::max(1, merge_of(model))};
}

std::int64_t patches_per_image(const Model& model) {
  for (const Module& module : model.modules) {
    if (module.kind == ModuleKind::vision && module.abstract.is) return module.abstract.tokens;
    if (module.kind != ModuleKind::vision || module.patch < 1) continue;
    const std::int64_t side = module.image_size / module.patch;
    return side * side;
  }
  return 0;
}

namespace {

std::int64_t merged_from(const Model& model, ModuleKind source) {
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::projector && module.source == source)
      return std::max(1, merged_rows(module));
  return 1;
}

}  // namespace

std::int64_t tokens_per_image(const Model& model) {
  return patches_per_image(model) / merged_from(model, ModuleKind::vision);
}

std::int64_t tokens_per_image(const Model& model, const SyntheticData& data) {
  return most_patches(data.image_sides, image_grid(model)) / merged_from(model, ModuleKind::vision);
}

std::int64_t tokens_per_clip(const Model& model) {
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::audio)
      return module.audio_tokens / merged_from(model, ModuleKind::audio);
  return 0;
}

}  // namespace polyphony
