#include "sim/datasets/count.h"

#include <algorithm>
#include <cmath>

#include "shared/model/data_modules.h"

namespace polyphony::sim {
namespace {

std::optional<Item> image_of(const Model& model, const Module& vision, const PictureSize& picture,
                             const Counting& by) {
  if (!by.native || vision.abstract.is) return Item{Modality::image, patches_of(vision), 0};
  if (by.sizes) {
    const std::optional<PatchGrid> grid = native_grid(*by.sizes, picture.height, picture.width);
    return grid ? std::optional(image_item(*grid)) : std::nullopt;
  }
  const int merge = merge_of(model), cell = vision.patch * merge;
  const double side =
      std::sqrt(static_cast<double>(picture.width) * static_cast<double>(picture.height));
  const auto cells = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(std::llround(side / cell), 1, vision.image_size / cell));
  return image_item({cells * merge, cells * merge});
}

}  // namespace

std::int64_t text_tokens(const std::string& text, const Counting& by) {
  if (by.tokenizer) return static_cast<std::int64_t>(by.tokenizer->encode(text).size());
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(text.size()) / by.bytes_a_token));
}

std::optional<Sample> count(const Model& model, const Found& found, const Counting& by) {
  Sample sample;
  if (const Module* vision = vision_module(model))
    for (const FoundPicture& picture : found.pictures) {
      const std::optional<Item> image = image_of(model, *vision, picture.size, by);
      if (!image) return {};
      sample.items.push_back(*image);
    }
  if (audio_module(model))
    for (const FoundSound& sound : found.sounds)
      sample.items.push_back(
          {Modality::audio, clip_tokens(model, sound.length, by.clip_tokens_a_second).tokens, 0});
  const std::int64_t answer = text_tokens(found.conversation.answers(), by);
  sample.items.push_back(
      {Modality::text,
       static_cast<std::int32_t>(answer + text_tokens(found.conversation.prompts(), by)),
       static_cast<std::int32_t>(answer)});
  return sample;
}

}  // namespace polyphony::sim
