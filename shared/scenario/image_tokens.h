// How many tokens an image or an audio clip becomes.
#pragma once

#include <cstdint>

#include "shared/data/data.h"
#include "shared/model/model.h"

namespace polyphony {

// Of the vision module; without one, nothing. The model need not be a valid one.
ImageGrid image_grid(const Model& model);

// Encoder patches of one image, and the tokens they take in the language sequence; 0 when the model
// sees no images or does not divide.
std::int64_t patches_per_image(const Model& model);
std::int64_t tokens_per_image(const Model& model);
// Of the largest image of synthetic data.
std::int64_t tokens_per_image(const Model& model, const SyntheticData& data);
// Of an audio clip of full length; 0 without an audio module.
std::int64_t tokens_per_clip(const Model& model);

}  // namespace polyphony
