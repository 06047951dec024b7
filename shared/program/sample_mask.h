// Module::mask said token by token (shared/layers/token_mask.h). Samples never see each other.
#pragma once

#include "shared/layers/token_mask.h"
#include "shared/program/work.h"

namespace polyphony {

// Behind those that `mask` has, with groups of its own.
void add_sample(TokenMask& mask, const Model& model, const Sample& sample);

}  // namespace polyphony
