// Converts a sample found on disk to what planning needs: numbers of patches, audio tokens and text
// tokens, as the model would see them.
//   images     fixed: the patches of the module's image size, whatever the size of the image.
//              native: if the image processor of the published weights keeps images' own sizes,
//              the grid that training gives them (shared/datasets/native_images.h). Of other
//              models, which are never trained so, the nearest square with as many pixels whose
//              side is a multiple of the projector's merged patch, at most the module's image size
//   audio      tokens per second, at most the module's number (shared/datasets/clip_tokens.h)
//   text       prompt and answer in one item after all others; the labels are the answer. Counted
//              by a tokenizer, without the special tokens that a template adds, or by a number of
//              bytes per token
#pragma once

#include <optional>

#include "shared/data/data.h"
#include "shared/datasets/clip_tokens.h"
#include "shared/datasets/found.h"
#include "shared/datasets/native_images.h"
#include "shared/model/model.h"
#include "shared/tokenizer/tokenizer.h"

namespace polyphony::sim {

struct Counting {
  bool native = false;                  // images
  std::optional<NativeImages> sizes{};  // of native images; nothing: squares
  double clip_tokens_a_second = kClipTokensASecond;
  std::optional<Tokenizer> tokenizer{};
  // Without a tokenizer: English text (our rule of thumb; Llama 3's paper has 3.17 to 3.94 letters
  // per token).
  double bytes_a_token = 4;
};

// Returns the number of tokens of a text. Throws InputError if a tokenizer cannot encode it, e.g.
// because it is not valid UTF-8.
std::int64_t text_tokens(const std::string& text, const Counting& by);

// Returns the sample; nothing if one of its images is refused (native_grid()). Images and audio for
// which the model has no module are dropped.
std::optional<Sample> count(const Model& model, const Found& found, const Counting& by);

}  // namespace polyphony::sim
