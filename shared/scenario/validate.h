// Can this scenario be planned at all? Everything that can be judged without a layout: sizes,
// divisibility, the shape of the model, whether samples fit the sequence, and what this version
// does not support, by name. Layouts: check_layout() in shared/plan/plan.h.
#pragma once

#include <cstdint>

#include "shared/scenario/scenario.h"

namespace polyphony {

// Throws InputError with scenario.file and the JSON pointer.
void validate(const Scenario& scenario);

// Encoder patches of one image, and the tokens they take in the language sequence; 0 when the model
// sees no images or does not divide.
std::int64_t patches_per_image(const Model& model);
std::int64_t tokens_per_image(const Model& model);
// Of the largest image of synthetic data.
std::int64_t tokens_per_image(const Model& model, const SyntheticData& data);
// Of an audio clip of full length; 0 without an audio module.
std::int64_t tokens_per_clip(const Model& model);

}  // namespace polyphony
