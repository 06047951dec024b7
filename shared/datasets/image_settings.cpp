#include "shared/datasets/image_settings.h"

#include <filesystem>

#include "shared/files/whole.h"

namespace polyphony {
namespace {

constexpr std::int64_t kLongestEdge = 1 << 14;
constexpr std::int64_t kMostPixels = 1 << 30;

// Sizes of processors with one size for all images.
const ObjectForm kSizeForm{"image_size",
                           "height and width, or the shorter edge",
                           {{"height", integer_form(1, kLongestEdge), "pixels"},
                            {"width", integer_form(1, kLongestEdge), "pixels"},
                            {"shortest_edge", integer_form(1, kLongestEdge), "pixels"}},
                           {}};
// Those of processors that keep the images' own sizes. Files of transformers 4 repeat min_pixels
// and max_pixels here.
const ObjectForm kPixelsForm{"image_pixels",
                             "fewest and most pixels of an image",
                             {{"shortest_edge", integer_form(1, kMostPixels), "fewest pixels"},
                              {"longest_edge", integer_form(1, kMostPixels), "most pixels"},
                              {"min_pixels", integer_form(1, kMostPixels), "fewest pixels"},
                              {"max_pixels", integer_form(1, kMostPixels), "most pixels"}},
                             {}};

Form size_form() { return any_form({integer_form(1, kLongestEdge), object_form(kSizeForm)}); }
Form triple_form(double least) {
  const Form one = number_form(least, 1e3);
  return any_form({one, list_form(one, 3, 3)});
}

// Keys of all image processors, and more.
std::vector<Field> with_common(std::vector<Field> fields) {
  const std::vector<Field> common{
      {"image_processor_type", text_form("CLIPImageProcessor"), "its class"},
      {"feature_extractor_type", text_form("CLIPFeatureExtractor"), "its class in old files"},
      {"do_resize", boolean_form(), "resizes to size"},
      {"resample", integer_form(0, 5), "PIL's number of the filter"},
      {"do_rescale", boolean_form(), "multiplies by rescale_factor"},
      {"rescale_factor", number_form(1e-9, 1e9), "usually 1/255"},
      {"do_normalize", boolean_form(), "subtracts image_mean, divides by image_std"},
      {"image_mean", triple_form(-1e3), "by channel"},
      {"image_std", triple_form(1e-6), "by channel"},
      // These do not change the pixels of an RGB image.
      {"processor_class", text_form("CLIPProcessor"), "the processor of the whole model"},
      {"do_convert_rgb", boolean_form(), "images are always RGB here"},
      {"data_format", text_form("channels_first"), "order of the result"},
      {"input_data_format", text_form("channels_first"), "order of the input"},
      {"device", text_form("cpu"), "where transformers computes"},
      {"return_tensors", text_form("pt"), "type of the result"},
      {"disable_grouping", boolean_form(), "batches of equal sizes"},
      {"image_seq_length", integer_form(0), "tokens of an image"},
      {"_valid_processor_keys", list_form(text_form("images")), "names of arguments"}};
  fields.insert(fields.end(), common.begin(), common.end());
  return fields;
}

const ObjectForm kForm{
    "image_processor",
    "the settings of an image processor",
    with_common({{"do_pad", boolean_form(), "pads to a square"},
                 {"image_aspect_ratio", choice_form({"square", "pad"}), "as do_pad"},
                 {"size", size_form(), "pixels"},
                 {"do_center_crop", boolean_form(), "crops to crop_size"},
                 {"crop_size", size_form(), "pixels"}}),
    {}};
const ObjectForm kNativeForm{
    "native_image_processor",
    "the settings of an image processor that keeps the images' own sizes",
    with_common(
        {{"size", object_form(kPixelsForm), "pixels of whole images"},
         {"min_pixels", integer_form(1, kMostPixels), "fewest pixels of an image"},
         {"max_pixels", integer_form(1, kMostPixels), "most pixels of an image"},
         {"patch_size", integer_form(1, 1 << 10), "pixels along a side of a patch"},
         {"merge_size", integer_form(1, 1 << 6), "patches that are merged, along a side"},
         // A still image is repeated; the weights of its frames are added when they are read.
         {"temporal_patch_size", integer_form(1, 1 << 6), "frames of a patch"}}),
    {}};

ImageSettings settings_of(const JsonValue& json) {
  std::string family;
  if (!json.is_object()) return {json, family};
  for (const char* key : {"feature_extractor_type", "image_processor_type"})
    if (json.has(key) && json.at(key).is_text()) family = json.at(key).text();
  for (const std::string end : {"ImageProcessor", "ImageProcessorFast", "FeatureExtractor"})
    if (family.ends_with(end)) return {json, family.substr(0, family.size() - end.size())};
  return {json, family};
}

// Removes nulls.
JsonValue parsed(const std::string& text, const std::string& file) {
  return JsonValue::merge(JsonValue::parse("{}", file), JsonValue::parse(text, file));
}

}  // namespace

void ImageSettings::check() const {
  json.check(object_form(family == kNativeFamily ? kNativeForm : kForm));
}

ImageSettings parse_image_settings(const std::string& text, const std::string& file) {
  return settings_of(parsed(text, file));
}

std::optional<ImageSettings> image_settings(const std::string& folder) {
  if (folder.empty()) return {};
  const std::string all = folder + "/processor_config.json";
  const std::string own = folder + "/preprocessor_config.json";
  if (std::filesystem::exists(all)) {
    const JsonValue root = parsed(read_file(all), all);
    if (root.is_object() && root.has("image_processor"))
      return settings_of(root.at("image_processor"));
  }
  if (!std::filesystem::exists(own)) return {};
  return parse_image_settings(read_file(own), own);
}

std::string weights_folder(const Scenario& scenario, const Module& module) {
  const auto m = static_cast<std::size_t>(&module - scenario.model.modules.data());
  return m < scenario.weights.size() ? scenario.weights[m].folder : "";
}

}  // namespace polyphony
