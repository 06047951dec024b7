// Decodes a WAV, FLAC or Ogg (Vorbis, Opus) file with libsndfile, to what Whisper's feature
// extractor takes (exec/data/log_mel.h): one channel of 16 kHz.
//   Integers become numbers from −1 to 1 (x / 2^(bits − 1)), floating-point samples keep their
//   values, and channels are averaged, as in librosa.load(mono=True).
//   Other sample rates are converted by exec/data/resample.h. Whisper's extractor leaves that to
//   its callers, who use different filters.
//
// A WAV or Ogg file that ends too early has the samples that exist; a FLAC file, whose header says
// how many there are, is refused. MP3 and other formats are refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shared/units.h"

namespace polyphony::exec {

inline constexpr std::int64_t kSoundRate = 16'000;  // Hz, of the result (arXiv 2212.04356, §2.2)
// Accepted sample rates: from telephones' quarter to the highest of studios.
inline constexpr std::int64_t kLowestRate = 2'000, kHighestRate = 192'000;  // Hz
inline constexpr int kMostChannels = 32;

// Returns the samples of the clip in `bytes`, whose format follows from its first bytes; of a clip
// longer than `most`, at least the samples up to there. Throws InputError naming `name` if the
// format is unknown, the file is damaged or empty, a sample is infinite or not a number, or the
// rate or the number of channels is beyond the limits above. Thread-safe.
std::vector<float> decode_sound(std::string_view bytes, const std::string& name, Seconds most);

}  // namespace polyphony::exec
