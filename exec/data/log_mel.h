// Log-mel features of an audio clip, as Whisper's feature extractor computes them
// (WhisperFeatureExtractor of transformers, from whose values these differ by at most 1.2e-7:
// scripts/oracle_audio).
//   x: the clip at 16 kHz, followed by zeros
//   |X|²: its power spectrum in frames of 400 samples (25 ms), one each 160 (10 ms): periodic
//         Hann window, the clip reflected at its ends, the last frame dropped
//   y = log10(max(M |X|², 1e-10)) with M of mel_filters(); result (max(y, max y − 8) + 4) / 4
// The result has the two frames of each of the clip's tokens, which cover the clip's own length
// (shared/datasets/clip_tokens.h). It equals the first frames of Whisper's, which pads clips to
// 30 s. Computed in fp64, because the logarithm magnifies rounding in bands of little power.
// Sources: Whisper, arXiv 2212.04356, §2.2; librosa's mel scale and norm of Slaney, "Auditory
// Toolbox", 1998.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/torch_pch.h"
#include "shared/model/model.h"
#include "shared/units.h"

namespace polyphony::exec {

// Returns the weights of the powers of 0, 40, …, 8,000 Hz in each band: [bands, 201] fp64. The
// bands are triangles whose edges are equally far apart on Slaney's mel scale (linear up to 1 kHz,
// logarithmic above), with an area of 1.
torch::Tensor mel_filters(std::int64_t bands);

class LogMel {
 public:
  explicit LogMel(const Module& audio);
  // Returns the features of an audio module. Throws InputError naming file and key if the
  // preprocessor_config.json in `folder`, or "feature_extractor" in its processor_config.json,
  // asks for other features. `folder` may be empty or have neither.
  static LogMel of(const std::string& folder, const Module& audio);

  // Returns [2 · tokens, mel_bins] float32. What is longer than the tokens is cut. Thread-safe.
  torch::Tensor features(const std::vector<float>& samples, std::int64_t tokens) const;
  // Returns the duration of the longest clip: of all tokens of the module.
  Seconds longest() const;

 private:
  std::int64_t most_tokens_;
  torch::Tensor window_, filters_;
};

}  // namespace polyphony::exec
