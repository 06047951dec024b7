// The sizes of images that keep their own ("smart resize" of Qwen2-VL's image processor): an image
// of h × w pixels becomes a grid of cells, each of merge × merge patches. Its sides, in pixels:
//   rounded to the nearest multiple of the cell (half to even)
//   if that is more than `most` pixels:    side / √(h·w / most), rounded down, but at least a cell
//   if that is fewer than `least` pixels:  side · √(least / (h·w)), rounded up
//   an image with one side over 200 times the other is refused
// In fp64, in the order of operations of the source, so that every grid equals its.
// Source: transformers 5.23, models/qwen2_vl/image_processing_qwen2_vl.py (smart_resize).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shared/datasets/image_settings.h"
#include "shared/patch_grid.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

struct NativeImages {
  std::int32_t patch = 14;                              // pixels
  std::int32_t merge = 2;                               // patches along a side of a cell
  std::int64_t least = 56 * 56, most = 28 * 28 * 1280;  // pixels of an image
  bool operator==(const NativeImages&) const = default;
};

// Why samples with a refused image are skipped.
inline constexpr const char* kTooLongPicture =
    "has an image that is over 200 times as long as wide";

// Returns the patches of an image of height × width pixels; nothing if it is refused.
std::optional<PatchGrid> native_grid(const NativeImages& images, std::int64_t height,
                                     std::int64_t width);

// Returns the sizes that an image processor asks for; nothing if its images do not keep their own.
// Throws InputError if a key is unknown or has a wrong value.
std::optional<NativeImages> native_images(const ImageSettings& settings);
// Returns those of the image processor in the folder of the vision module's published weights.
// Throws InputError also if they do not fit the model.
std::optional<NativeImages> native_images(const Scenario& scenario);

}  // namespace polyphony
