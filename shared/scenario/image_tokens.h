// The number of tokens that an image or an audio clip becomes in the encoder and in the language
// sequence.
#pragma once

#include <cstdint>

#include "shared/data/data.h"
#include "shared/model/model.h"

namespace polyphony {

// Returns how the vision module cuts images into patches; a default-constructed ImageGrid if there
// is none. The model need not be valid.
ImageGrid image_grid(const Model& model);

// Returns the number of encoder patches of one image of full size; 0 if the model has no vision
// module.
std::int64_t patches_per_image(const Model& model);
// Returns the number of tokens that this image takes in the language sequence.
std::int64_t tokens_per_image(const Model& model);
// As above, for the largest image that the synthetic data can contain.
std::int64_t tokens_per_image(const Model& model, const SyntheticData& data);
// Returns the number of tokens of an audio clip of full length in the language sequence; 0 if the
// model has no audio module.
std::int64_t tokens_per_clip(const Model& model);

}  // namespace polyphony
