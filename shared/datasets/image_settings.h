// The settings of a published vision model's image processor: preprocessor_config.json, or
// "image_processor" in processor_config.json, which Hugging Face's transformers writes since
// version 5. What they ask for: shared/datasets/native_images.h (sizes),
// exec/data/image_processor.h (pixels).
#pragma once

#include <optional>
#include <string>

#include "shared/scenario/scenario.h"
#include "shared/text/strict_json.h"

namespace polyphony {

// The processors whose images keep their own sizes (Qwen2VLImageProcessor).
inline constexpr const char* kNativeFamily = "Qwen2VL";

struct ImageSettings {
  JsonValue json;  // without nulls, which mean the default
  // The class without "ImageProcessor", "ImageProcessorFast" or "FeatureExtractor", as "CLIP";
  // empty if the file does not name one.
  std::string family;
  // Throws InputError if a key is unknown to us or has a wrong value.
  void check() const;
};

// Returns the settings in a folder; nothing if `folder` is empty or has neither file.
std::optional<ImageSettings> image_settings(const std::string& folder);
// Returns the settings in a text of JSON, which `file` names.
ImageSettings parse_image_settings(const std::string& text, const std::string& file);

// Returns the folder of a module's published weights; empty if it has none.
std::string weights_folder(const Scenario& scenario, const Module& module);

}  // namespace polyphony
