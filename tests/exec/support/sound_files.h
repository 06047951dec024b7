// Audio files in memory, written by libsndfile.
#pragma once

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numbers>
#include <string>
#include <vector>

#include "shared/error.h"

namespace polyphony::exec::testing {

inline constexpr int kWav16 = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
inline constexpr int kWavFloat = SF_FORMAT_WAV | SF_FORMAT_FLOAT;
inline constexpr int kFlac16 = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
inline constexpr int kVorbis = SF_FORMAT_OGG | SF_FORMAT_VORBIS;

// Returns the file of `samples`, in which channels alternate.
inline std::string sound_file(int format, int rate, const std::vector<float>& samples,
                              int channels = 1) {
  struct Target {
    std::string bytes;
    sf_count_t at = 0;
  } target;
  SF_VIRTUAL_IO access{};
  access.get_filelen = [](void* to) {
    return static_cast<sf_count_t>(static_cast<Target*>(to)->bytes.size());
  };
  access.tell = [](void* to) { return static_cast<Target*>(to)->at; };
  access.seek = [](sf_count_t offset, int whence, void* to) {
    Target& file = *static_cast<Target*>(to);
    const auto end = static_cast<sf_count_t>(file.bytes.size());
    return file.at = offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.at : end);
  };
  access.read = [](void* into, sf_count_t count, void* to) {
    Target& file = *static_cast<Target*>(to);
    count = std::clamp<sf_count_t>(count, 0, static_cast<sf_count_t>(file.bytes.size()) - file.at);
    std::memcpy(into, file.bytes.data() + file.at, static_cast<std::size_t>(count));
    file.at += count;
    return count;
  };
  access.write = [](const void* from, sf_count_t count, void* to) {
    Target& file = *static_cast<Target*>(to);
    const auto at = static_cast<std::size_t>(file.at), size = static_cast<std::size_t>(count);
    file.bytes.resize(std::max(file.bytes.size(), at + size));
    std::memcpy(file.bytes.data() + at, from, size);
    file.at += count;
    return count;
  };
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = channels;
  info.format = format;
  SNDFILE* file = sf_open_virtual(&access, SFM_WRITE, &info, &target);
  POLYPHONY_CHECK(file, "libsndfile: " << sf_strerror(nullptr));
  const auto frames = static_cast<sf_count_t>(samples.size()) / channels;
  POLYPHONY_CHECK(sf_writef_float(file, samples.data(), frames) == frames, sf_strerror(file));
  sf_close(file);
  return target.bytes;
}

// Returns `count` samples of amplitude · cos(2π · hertz · time).
inline std::vector<float> cosine(double hertz, int rate, std::size_t count,
                                 double amplitude = 0.5) {
  std::vector<float> samples(count);
  for (std::size_t i = 0; i < count; ++i)
    samples[i] = static_cast<float>(
        amplitude * std::cos(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate));
  return samples;
}

}  // namespace polyphony::exec::testing
