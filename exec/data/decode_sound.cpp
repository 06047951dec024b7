#include "exec/data/decode_sound.h"

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>

#include "exec/data/resample.h"
#include "shared/error.h"

namespace polyphony::exec {
namespace {

// What the filter of resample() reads beyond a sample: 48 zeros of a sinc at 2 kHz are 25 ms.
constexpr Seconds kBeyond{0.1};

[[noreturn]] void refuse_sound(const std::string& name, const std::string& what) {
  throw InputError(name, "", what, "replace the file, or remove its sample");
}

// Returns the name of the format, by its signature (RIFF WAVE; RFC 9639, §6; RFC 3533, §6).
const char* format_of(std::string_view bytes) {
  if (bytes.starts_with("RIFF") && bytes.size() > 12 && bytes.substr(8, 4) == "WAVE") return "WAV";
  if (bytes.starts_with("fLaC")) return "FLAC";
  if (bytes.starts_with("OggS")) return "Ogg";
  return nullptr;
}

// A file in memory, as libsndfile reads it.
struct Source {
  std::string_view bytes;
  sf_count_t at = 0;
};
Source& source_of(void* source) { return *static_cast<Source*>(source); }

sf_count_t size_of(void* source) { return static_cast<sf_count_t>(source_of(source).bytes.size()); }
sf_count_t tell(void* source) { return source_of(source).at; }
sf_count_t seek(sf_count_t offset, int whence, void* source) {
  const sf_count_t from = whence == SEEK_SET   ? 0
                          : whence == SEEK_CUR ? tell(source)
                                               : size_of(source);
  const sf_count_t least = -from, most = size_of(source) - from;
  return source_of(source).at = from + std::clamp(offset, least, most);
}
sf_count_t read(void* to, sf_count_t count, void* source) {
  Source& from = source_of(source);
  count = std::clamp<sf_count_t>(count, 0, size_of(source) - from.at);
  std::memcpy(to, from.bytes.data() + from.at, static_cast<std::size_t>(count));
  from.at += count;
  return count;
}
sf_count_t write(const void*, sf_count_t, void*) { return 0; }

// Returns libsndfile's words for its error, without line breaks and what surrounds the words.
std::string reason(int error) {
  std::string text = sf_error_number(error);
  if (const std::string prefix = "Error : "; text.starts_with(prefix)) text.erase(0, prefix.size());
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return text;
}

}  // namespace

std::vector<float> decode_sound(std::string_view bytes, const std::string& name, Seconds most) {
  const char* format = format_of(bytes);
  if (!format)
    throw InputError(name, "", "is no WAV, FLAC or Ogg file",
                     "convert it, for example to FLAC, or remove its sample");
  const std::string damaged = std::string("is a damaged ") + format + " file: ";
  Source source{bytes};
  SF_VIRTUAL_IO access{size_of, seek, read, write, tell};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> file(
      sf_open_virtual(&access, SFM_READ, &info, &source), sf_close);
  if (!file) refuse_sound(name, damaged + reason(sf_error(nullptr)));
  if (info.channels < 1 || info.channels > kMostChannels)
    refuse_sound(name, "has " + std::to_string(info.channels) + " channels, not 1 to " +
                           std::to_string(kMostChannels));
  if (info.samplerate < kLowestRate || info.samplerate > kHighestRate)
    refuse_sound(name, "has a sample rate of " + std::to_string(info.samplerate) + " Hz, not " +
                           std::to_string(kLowestRate) + " to " + std::to_string(kHighestRate) +
                           " Hz");

  const std::int64_t longest = std::llround((most + kBeyond).count() * info.samplerate);
  const std::int64_t wanted = std::min<std::int64_t>(longest, info.frames);
  constexpr std::int64_t kBlock = 4096;  // samples of every channel
  const auto channels = static_cast<std::size_t>(info.channels);
  std::vector<float> block(static_cast<std::size_t>(kBlock) * channels), samples;
  while (static_cast<std::int64_t>(samples.size()) < wanted) {
    const std::int64_t left = wanted - static_cast<std::int64_t>(samples.size());
    const sf_count_t got = sf_readf_float(file.get(), block.data(), std::min(kBlock, left));
    if (got < 1) break;
    for (auto at = block.begin(); at != block.begin() + got * info.channels; at += info.channels) {
      const float sum = std::accumulate(at, at + info.channels, 0.0F);
      samples.push_back(sum / static_cast<float>(info.channels));
    }
  }
  if (const int error = sf_error(file.get()); error != SF_ERR_NO_ERROR)
    refuse_sound(name, damaged + reason(error));
  if (samples.empty()) refuse_sound(name, "has no samples");
  // Of a file whose length is unknown, libsndfile states the largest.
  if (static_cast<std::int64_t>(samples.size()) < wanted && info.frames != SF_COUNT_MAX)
    refuse_sound(name, damaged + "it ends after " + std::to_string(samples.size()) + " of " +
                           std::to_string(info.frames) + " samples");
  samples = resample(samples, info.samplerate, kSoundRate);
  if (!std::all_of(samples.begin(), samples.end(), [](float x) { return std::isfinite(x); }))
    refuse_sound(name, "has samples that are infinite or not numbers");
  return samples;
}

}  // namespace polyphony::exec
