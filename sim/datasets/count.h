// Converts a sample found on disk to what planning needs: numbers of patches, audio tokens and text
// tokens, as the model would see them.
//   images     fixed: the patches of the module's image size, whatever the size of the image.
//              native: the nearest square with as many pixels whose side is a multiple of the
//              projector's merged patch, at most the module's image size (only squares are
//              supported)
//   audio      tokens per second, at most the module's number; clips are not split
//   text       prompt and answer in one item after all others; the labels are the answer
#pragma once

#include "shared/data/data.h"
#include "shared/model/model.h"
#include "sim/datasets/found.h"
#include "sim/datasets/tokenizer.h"

namespace polyphony::sim {

struct Counting {
  bool native = false;               // images
  double clip_tokens_a_second = 50;  // Whisper's: 1,500 for 30 s (arXiv 2212.04356, §2.2)
  Tokenizer tokenizer{};
};

// Returns the sample. Images and audio for which the model has no module are dropped.
Sample count(const Model& model, const Found& found, const Counting& by);

}  // namespace polyphony::sim
