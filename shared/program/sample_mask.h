// The attention mask of a sample, token by token (shared/work/token_mask.h), as Module::mask
// defines it; and the language rows that condition a latent. Samples never attend to each other.
#pragma once

#include "shared/program/work.h"
#include "shared/work/token_mask.h"

namespace polyphony {

// Appends the rows of `sample` to `mask`, with mask groups of their own.
void add_sample(TokenMask& mask, const Model& model, const Sample& sample);

// Returns the language rows that condition the latent at `item`, counted from the start of the
// sample. If a sample has several latents, each reads the rows between the previous latent and
// itself; the last one also reads the rows that follow it.
Interval condition_rows(const Model& model, const Sample& sample, std::uint32_t item);

}  // namespace polyphony
