#include "exec/data/image_processor.h"

#include <algorithm>
#include <vector>

#include "shared/datasets/image_settings.h"
#include "shared/error.h"

namespace polyphony::exec {
namespace {

using Triple = std::array<double, 3>;
constexpr Triple kHalf{0.5, 0.5, 0.5};
// OPENAI_CLIP_MEAN and OPENAI_CLIP_STD of transformers/utils/constants.py.
constexpr Triple kClipMean{0.48145466, 0.4578275, 0.40821073};
constexpr Triple kClipDeviation{0.26862954, 0.26130258, 0.27577711};
constexpr std::int64_t kDefaultEdge = 224;           // of all types below
constexpr std::int64_t kBilinear = 2, kBicubic = 3;  // PIL.Image.Resampling

// Values of missing keys (transformers/models/*/image_processing_pil_*.py).
struct Type {
  const char* name;
  std::int64_t resample;
  Triple mean, deviation;
  bool shortest_edge;   // the default of "size" is a shorter edge, not a square
  bool number_is_edge;  // a number as "size" is a shorter edge, too
  bool crop, can_pad;
};
constexpr std::array<Type, 6> kTypes{
    {{"CLIP", kBicubic, kClipMean, kClipDeviation, true, true, true, false},
     {"Siglip", kBicubic, kHalf, kHalf, false, true, false, false},
     {"Llava", kBicubic, kClipMean, kClipDeviation, true, true, true, true},
     {"ViT", kBilinear, kHalf, kHalf, false, false, false, false},
     {"Bit", kBicubic, kClipMean, kClipDeviation, true, true, true, false},
     {kNativeFamily, kBicubic, kClipMean, kClipDeviation, false, false, false, false}}};

std::string pixels(const PixelSize& size) {
  return std::to_string(size.height) + " × " + std::to_string(size.width) + " pixels";
}

// Returns the settings of the folder's image processor; SigLIP's if it has none.
ImageSettings settings_in(const std::string& folder, int image_size) {
  if (std::optional<ImageSettings> settings = image_settings(folder)) return *std::move(settings);
  const std::string edge = std::to_string(image_size);
  return parse_image_settings(
      R"({"image_processor_type": "SiglipImageProcessor", "size": {"height": )" + edge +
          R"(, "width": )" + edge + "}}",
      folder + "/preprocessor_config.json");
}

Type type_of(const ImageSettings& settings) {
  const JsonValue& json = settings.json;
  if (settings.family.empty())
    json.refuse("has no image_processor_type", "add it, for example \"CLIPImageProcessor\"");
  for (const Type& type : kTypes)
    if (settings.family == type.name) return type;
  const char* key = "image_processor_type";
  if (!json.has(key)) key = "feature_extractor_type";
  json.refuse_at(key, json.at(key).text() + " is not supported",
                 "use a vision model with the image processor of CLIP, SigLIP, LLaVA-1.5, ViT, "
                 "BiT, Qwen2-VL or Qwen2.5-VL");
}

Triple triple(const JsonValue& json, const char* key, const Triple& otherwise) {
  if (!json.has(key)) return otherwise;
  const JsonValue value = json.at(key);
  if (value.is_number()) return {value.number(), value.number(), value.number()};
  return {value.at(std::size_t{0}).number(), value.at(1).number(), value.at(2).number()};
}

}  // namespace

struct ImageProcessorReader {
  const JsonValue json;
  const Type type;
  ImageProcessor out;

  bool flag(const char* key, bool value) const {
    json.read(key, value);
    return value;
  }

  void read_resize() {
    static constexpr std::array<const char*, 6> kFilters{"nearest", "Lanczos", "bilinear",
                                                         "bicubic", "box",     "Hamming"};
    std::int64_t resample = type.resample;
    json.read("resample", resample);
    if (resample != kBilinear && resample != kBicubic)
      json.refuse_at(
          "resample",
          std::string(kFilters[static_cast<std::size_t>(resample)]) + " is not supported",
          "use 2 (bilinear) or 3 (bicubic)");
    out.filter_ = resample == kBicubic ? Filter::bicubic : Filter::bilinear;
    out.resize_ = flag("do_resize", true);
    if (out.native_) return;
    out.shortest_ = type.shortest_edge ? kDefaultEdge : 0;
    out.size_ = {kDefaultEdge, kDefaultEdge};
    if (!json.has("size")) return;
    const JsonValue size = json.at("size");
    if (size.is_number()) {
      out.shortest_ = type.number_is_edge ? size.integer() : 0;
      out.size_ = {size.integer(), size.integer()};
      return;
    }
    out.shortest_ = 0;
    const bool edge = size.read("shortest_edge", out.shortest_);
    const bool height = size.read("height", out.size_.height);
    const bool width = size.read("width", out.size_.width);
    if (height != width || height == edge)
      size.refuse("must have either height and width, or shortest_edge", wanted_size());
  }

  void read_crop() {
    out.crop_ = flag("do_center_crop", type.crop);
    if (!out.crop_) return;
    PixelSize crop{kDefaultEdge, kDefaultEdge};
    if (json.has("crop_size")) {
      const JsonValue size = json.at("crop_size");
      if (size.is_number())
        crop = {size.integer(), size.integer()};
      else if (!size.read("height", crop.height) || !size.read("width", crop.width))
        size.refuse("must have height and width", wanted_size());
    }
    expect("crop_size", crop);
  }

  void read_padding() {
    const bool pad = flag("do_pad", false);
    if (pad && !type.can_pad)
      json.refuse_at("do_pad", "is supported for LlavaImageProcessor only", "set it to false");
    std::string ratio;
    json.read("image_aspect_ratio", ratio);
    out.pad_ = pad || ratio == "pad";
  }

  // In transformers' order of operations and types, so that each value equals its bit for bit.
  void read_values() {
    const Triple mean = triple(json, "image_mean", type.mean);
    const Triple deviation = triple(json, "image_std", type.deviation);
    double factor = 1.0 / 255;
    json.read("rescale_factor", factor);
    if (!flag("do_rescale", true)) factor = 1;
    const bool normalize = flag("do_normalize", true);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      for (std::size_t i = 0; i < 256; ++i) {
        auto value = static_cast<float>(static_cast<double>(i) * factor);
        if (normalize)
          value =
              (value - static_cast<float>(mean[channel])) / static_cast<float>(deviation[channel]);
        out.values_[channel][i] = value;
      }
      const double color = 255 * mean[channel];
      if (out.pad_ && (color < 0 || color > 255))
        json.refuse_at("image_mean", "is no color to pad with", "use means from 0 to 1");
      out.padding_[channel] = static_cast<std::int64_t>(color);
    }
  }

  std::string wanted_size() const {
    const std::string edge = std::to_string(out.image_size_);
    return "write {\"height\": " + edge + ", \"width\": " + edge + "}";
  }
  // The result must have the size that the model reads.
  void expect(const char* key, const PixelSize& size) const {
    const PixelSize expected{out.image_size_, out.image_size_};
    if (size != expected)
      json.refuse_at(
          key, "gives images of " + pixels(size) + ", but the model expects " + pixels(expected),
          "change it, or the vision module's image_size");
  }
  void check_result() const {
    if (out.crop_) return;  // checked
    if (out.native_) return;
    if (!out.resize_)
      json.refuse_at("do_resize", "is false without do_center_crop: images would keep their size",
                     "set it to true");
    if (out.shortest_ && !out.pad_)
      json.refuse_at("size",
                     "keeps the aspect ratio without do_center_crop: not all images are "
                     "square",
                     wanted_size());
    expect("size", out.shortest_ ? PixelSize{out.shortest_, out.shortest_} : out.size_);
  }
};

ImageProcessor ImageProcessor::of(const std::string& folder, int image_size) {
  const ImageSettings settings = settings_in(folder, image_size);
  const Type type = type_of(settings);
  settings.check();
  ImageProcessorReader reader{settings.json, type, ImageProcessor()};
  reader.out.image_size_ = image_size;
  reader.out.native_ = native_images(settings);
  reader.read_padding();
  reader.read_resize();
  reader.read_crop();
  reader.check_result();
  reader.read_values();
  return reader.out;
}

// The longer edge is rounded down, as in get_resize_output_image_size() of transformers.
PixelSize ImageProcessor::resized(PixelSize from, PatchGrid grid) const {
  if (native_)
    return {std::int64_t{grid.rows} * native_->patch, std::int64_t{grid.columns} * native_->patch};
  if (!resize_) return from;
  if (!shortest_) return size_;
  const auto [height, width] = from;
  return height < width ? PixelSize{shortest_, shortest_ * width / height}
                        : PixelSize{shortest_ * height / width, shortest_};
}

torch::Tensor ImageProcessor::process(const DecodedImage& image, PatchGrid grid) const {
  POLYPHONY_CHECK(!native_ || grid.patches() > 0, image.name << " has no grid");
  const std::int64_t longer = std::max(image.height, image.width);
  const PixelSize from = pad_ ? PixelSize{longer, longer} : PixelSize{image.height, image.width};
  const PixelSize to = resized(from, grid);
  for (const PixelSize& size : {from, to})
    if (size.height * size.width > kMostPixels)
      throw InputError(image.name, "",
                       "has " + pixels({image.height, image.width}) + ", which would become " +
                           pixels(size) + " before they are cropped or resized",
                       "crop the image, or remove its sample");
  // [height, width, 3]
  torch::Tensor input = torch::from_blob(const_cast<unsigned char*>(image.rgb.data()),
                                         {image.height, image.width, 3}, torch::kUInt8);
  if (from != PixelSize{image.height, image.width}) {
    const torch::Tensor color = torch::tensor(at::ArrayRef<std::int64_t>(padding_), torch::kUInt8);
    torch::Tensor square = torch::empty({from.height, from.width, 3}, torch::kUInt8);
    square.copy_(color.expand_as(square));
    square.narrow(0, (from.height - image.height) / 2, image.height)
        .narrow(1, (from.width - image.width) / 2, image.width)
        .copy_(input);
    input = square;
  }
  std::vector<unsigned char> rows;
  if (to != from) {
    rows = resize_image(input.const_data_ptr<unsigned char>(), from, to, filter_);
    input = torch::from_blob(rows.data(), {to.height, to.width, 3}, torch::kUInt8);
  }
  if (crop_) {
    // Negative padding crops. Of an odd number of pixels, the larger half is cut below and right of
    // the crop, but padded above and left of the image.
    std::vector<std::int64_t> edges{0, 0};
    for (const std::int64_t length : {to.width, to.height}) {
      const std::int64_t missing = image_size_ - length;
      const std::int64_t before = missing < 0 ? -(-missing / 2) : (missing + 1) / 2;
      edges.insert(edges.end(), {before, missing - before});
    }
    input = at::constant_pad_nd(input, edges, 0);
  }
  input = input.permute({2, 0, 1}).contiguous();  // by channel
  torch::Tensor result = torch::empty(input.sizes(), torch::kFloat32);
  const std::int64_t places = input.size(1) * input.size(2);
  const unsigned char* read = input.const_data_ptr<unsigned char>();
  float* write = result.data_ptr<float>();
  for (const std::array<float, 256>& values : values_)
    for (std::int64_t i = 0; i < places; ++i) *write++ = values[*read++];
  return result;
}

}  // namespace polyphony::exec
