#include "shared/datasets/native_images.h"

#include <algorithm>
#include <cmath>

#include "shared/model/data_modules.h"

namespace polyphony {
namespace {

constexpr double kMostRatio = 200;

[[noreturn]] void refuse_module(const JsonValue& json, const std::string& key, int is,
                                int expected) {
  json.refuse_at(key,
                 "is " + std::to_string(is) + ", but the model's is " + std::to_string(expected),
                 "use the image processor that was published with the vision module's weights");
}

}  // namespace

std::optional<PatchGrid> native_grid(const NativeImages& images, std::int64_t height,
                                     std::int64_t width) {
  if (height < 1 || width < 1) return {};
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  if (std::max(h, w) / std::min(h, w) > kMostRatio) return {};
  const double cell = images.patch * images.merge;
  // Of whole cells; the default rounding of nearbyint() is half to even, as Python's.
  double rows = std::nearbyint(h / cell), columns = std::nearbyint(w / cell);
  const double pixels = rows * cell * columns * cell;
  if (const auto most = static_cast<double>(images.most); pixels > most) {
    const double beta = std::sqrt(h * w / most);
    rows = std::max(1.0, std::floor(h / beta / cell));
    columns = std::max(1.0, std::floor(w / beta / cell));
  } else if (const auto least = static_cast<double>(images.least); pixels < least) {
    const double beta = std::sqrt(least / (h * w));
    rows = std::ceil(h * beta / cell);
    columns = std::ceil(w * beta / cell);
  }
  return PatchGrid{static_cast<std::int32_t>(rows) * images.merge,
                   static_cast<std::int32_t>(columns) * images.merge};
}

std::optional<NativeImages> native_images(const ImageSettings& settings) {
  if (settings.family != kNativeFamily) return {};
  settings.check();
  const JsonValue& json = settings.json;
  NativeImages images;
  bool resize = true;
  if (json.read("do_resize", resize); !resize)
    json.refuse_at("do_resize", "is false: sides would be no multiples of patches",
                   "set it to true");
  if (json.has("size")) {
    const JsonValue size = json.at("size");
    const bool whole =
        size.read("shortest_edge", images.least) && size.read("longest_edge", images.most);
    const bool replaced = json.has("min_pixels") && json.has("max_pixels");
    if (!whole && !replaced)
      size.refuse("must have shortest_edge and longest_edge, which count pixels of whole images",
                  R"(write {"shortest_edge": 3136, "longest_edge": 1003520})");
  }
  json.read("min_pixels", images.least);
  json.read("max_pixels", images.most);
  json.read("patch_size", images.patch);
  json.read("merge_size", images.merge);
  if (images.least > images.most)
    json.refuse("asks for images of at least " + std::to_string(images.least) +
                    " pixels, but at most " + std::to_string(images.most),
                "increase max_pixels");
  return images;
}

std::optional<NativeImages> native_images(const Scenario& scenario) {
  const Module* vision = vision_module(scenario.model);
  if (!vision) return {};
  const std::optional<ImageSettings> settings = image_settings(weights_folder(scenario, *vision));
  if (!settings) return {};
  const std::optional<NativeImages> images = native_images(*settings);
  if (!images) return {};
  const int merge = merge_of(scenario.model);
  if (images->patch != vision->patch)
    refuse_module(settings->json, "patch_size", images->patch, vision->patch);
  if (images->merge != merge) refuse_module(settings->json, "merge_size", images->merge, merge);
  if (!vision->rotary)
    settings->json.refuse_at(
        "image_processor_type",
        "keeps the images' own sizes, but the vision module \"" + vision->name +
            "\" has learned positions for one size",
        "use a vision module with rotary positions, or another image processor");
  return images;
}

}  // namespace polyphony
