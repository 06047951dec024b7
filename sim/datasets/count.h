// What a model would see of a sample found on disk: patches, clip tokens, text tokens, as planning wants them.
//   pictures   fixed: patches of the module's image size, whatever theirs is. native: the nearest square of as many pixels whose
//              side divides by the projector's merge, at most the module's image size (squares alone are supported)
//   sounds     tokens a second, at most the module's; clips are not cut
//   text       prompt and answer, in one item behind all others; labels of the answer
#pragma once

#include "shared/data/data.h"
#include "shared/model/model.h"
#include "sim/datasets/found.h"
#include "sim/datasets/tokenizer.h"

namespace polyphony::sim {

struct Counting {
  bool native = false;
  double clip_tokens_a_second = 50;  // Whisper's: 1,500 of 30 s (arXiv 2212.04356, §2.2)
  Tokenizer tokenizer{};
};

// Pictures and sounds that the model has no module for are left out.
Sample count(const Model& model, const Found& found, const Counting& by);

}  // namespace polyphony::sim
