// Prepares images as the image processor of a published vision model does: what
// preprocessor_config.json, or "image_processor" in processor_config.json, of Hugging Face's
// transformers asks for, in this order:
//   pad          to a square, with the mean color around the centered image (LLaVA-1.5)
//   resize       to {height, width}; or the shorter edge to a length (shortest_edge), which keeps
//                the aspect ratio; or to a grid of patches of the image's own
//                (shared/datasets/native_images.h); bilinear or bicubic, antialiased
//   center crop  zeros around the image where it is smaller
//   rescale, normalize   (x · rescale_factor − mean) / standard deviation
// Supported are the types CLIP, SigLIP, LLaVA (1.5), ViT, BiT (DINOv2) and Qwen2-VL (which
// Qwen2.5-VL has, too), whose defaults replace missing keys, as in transformers 5. Other types and
// every other key that could change pixels are refused by name.
//   Patches are cut when a microbatch is packed, row by row over the image. Qwen2-VL's processor
// puts the patches of each cell one after another, and each patch twice, as two frames; here the
// projector gathers the cells (exec/layers/projector.h), and the two frames' weights are added when
// they are read.
//
// Source: transformers 5.23, image_processing_backends.py (PilBackend). All steps equal it, but for
// 1 of 255 in less than 0.01 % of the values of two processors (scripts/oracle_images).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "exec/data/decode_image.h"
#include "exec/data/resize_image.h"
#include "exec/torch_pch.h"
#include "shared/datasets/native_images.h"

namespace polyphony::exec {

class ImageProcessor {
 public:
  // Returns what the files in `folder` ask for. If `folder` is empty or has neither file, returns
  // SigLIP's: resizes to image_size × image_size, bicubic; mean and standard deviation are 0.5.
  // Throws InputError naming file and key if something is not supported, or if the result would
  // have neither image_size × image_size pixels nor a size of the image's own.
  static ImageProcessor of(const std::string& folder, int image_size);

  // Returns how the sizes of images follow from their own; nothing if all have image_size.
  const std::optional<NativeImages>& native() const { return native_; }

  // Returns [3, image_size, image_size] float32; if images keep their own sizes, as many pixels as
  // the patches of `grid` have, which is ignored otherwise. Throws InputError if the padded or
  // resized image would have more than kMostPixels, as a line of one pixel's width could.
  // Thread-safe.
  torch::Tensor process(const DecodedImage& image, PatchGrid grid = {}) const;

 private:
  friend struct ImageProcessorReader;
  ImageProcessor() = default;
  PixelSize resized(PixelSize from, PatchGrid grid) const;

  std::int64_t image_size_ = 0;
  std::optional<NativeImages> native_;
  bool pad_ = false, resize_ = true, crop_ = false;
  Filter filter_ = Filter::bicubic;
  std::int64_t shortest_ = 0;  // 0: resize to size_
  PixelSize size_{};
  std::array<std::int64_t, 3> padding_{};           // color
  std::array<std::array<float, 256>, 3> values_{};  // by channel, of each pixel value
};

}  // namespace polyphony::exec
