// How many tokens an audio encoder makes of a clip, from the clip's length.
//   A clip keeps its own length: it has as many tokens as cover it, rounded up to the projector's
//   merge, and zeros follow it up to their end. A clip longer than the module's audio_tokens is
//   cut.
// Qwen2-Audio pads every clip with zeros to 30 s, does not attend to the padding in the encoder,
// and drops its tokens (transformers 5.23, modeling_qwen2_audio.py). That gives the same tokens,
// except for the last one: its convolution reads a frame of the padding there, and tokens that do
// not fill a run of merged ones are dropped. A model that keeps the tokens of the padding needs
// clips that have full length in their files.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "shared/model/data_modules.h"
#include "shared/units.h"

namespace polyphony {

// Whisper's: a frame is 10 ms, and two frames make a token (arXiv 2212.04356, §2.2).
inline constexpr double kClipTokensASecond = 50;

struct ClipTokens {
  std::int32_t tokens = 0;
  bool cut = false;
};

// Returns the tokens of a clip. The model must have an audio module.
inline ClipTokens clip_tokens(const Model& model, Seconds length,
                              double a_second = kClipTokensASecond) {
  // Far less than a sample, of which a token has 3,840 at 192 kHz: it only removes rounding.
  constexpr double kRounding = 1e-6;
  const int merge = std::max(1, merge_of(model, ModuleKind::audio));
  const int most = audio_module(model)->audio_tokens / merge;
  const double runs = std::ceil((length.count() * a_second - kRounding) / merge);
  return {static_cast<std::int32_t>(std::clamp<double>(runs, 1, most)) * merge, runs > most};
}

}  // namespace polyphony
