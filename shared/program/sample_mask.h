// What rows of a sample see of each other: Module::mask said token by token (shared/work/token_mask.h),
// and what a latent reads. Samples never see each other.
#pragma once

#include "shared/program/work.h"
#include "shared/work/token_mask.h"

namespace polyphony {

// Behind those that `mask` has, with groups of its own.
void add_sample(TokenMask& mask, const Model& model, const Sample& sample);

// Of the latent at `item`: the language rows that condition it, counted in the sample. Of several latents each
// reads what stands between the one before and itself, the last one what follows, too.
Interval condition_rows(const Model& model, const Sample& sample, std::uint32_t item);

}  // namespace polyphony
