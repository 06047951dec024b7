// Audio files that libsndfile writes here, decoded and resampled to 16 kHz.
#include "exec/data/decode_sound.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/data/resample.h"
#include "tests/exec/support/sound_files.h"
#include "tests/exec/support/temp_folder.h"

namespace polyphony::exec {
namespace {

using testing::cosine;
using testing::refusal;
using testing::sound_file;

constexpr Seconds kLong{100};

std::string refused_sound(const std::string& bytes) {
  return refusal([&] { decode_sound(bytes, "a.bin", kLong); });
}

// The largest difference between samples `begin` to `end`.
float difference(const std::vector<float>& a, const std::vector<float>& b, std::size_t begin,
                 std::size_t end) {
  float largest = 0;
  for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace

TEST_SUITE("audio") {
  TEST_CASE("integers are divided by their range, floating-point samples keep their values") {
    // libsndfile writes round(32,767 x).
    std::vector<float> written, expected;
    for (const float value : {0.0F, 1.0F, -1.0F, 16384.0F, -32767.0F}) {
      written.push_back(value / 32767);
      expected.push_back(value / 32768);
    }
    for (const int format : {testing::kWav16, testing::kFlac16})
      CHECK(decode_sound(sound_file(format, 16000, written), "", kLong) == expected);
    const std::vector<float> loud{1.5F, -3};
    CHECK(decode_sound(sound_file(testing::kWavFloat, 16000, loud), "", kLong) == loud);
  }

  TEST_CASE("channels are averaged") {
    const std::string stereo =
        sound_file(testing::kWav16, 16000, {0.5F, 0.25F, -0.5F, 0.5F, 0, 0.125F}, 2);
    CHECK(decode_sound(stereo, "", kLong) == std::vector<float>{0.375F, 0, 0.0625F});
  }

  TEST_CASE("Vorbis changes samples a little, and keeps their number") {
    const std::vector<float> tone = cosine(440, 16000, 16000);
    const std::vector<float> decoded =
        decode_sound(sound_file(testing::kVorbis, 16000, tone), "", kLong);
    REQUIRE(decoded.size() == tone.size());
    CHECK(difference(decoded, tone, 1000, 15000) < 0.05F);
  }

  TEST_CASE("a long clip is decoded up to the asked length, and not much further") {
    const std::string file = sound_file(testing::kFlac16, 16000, cosine(440, 16000, 64000));
    const std::vector<float> whole = decode_sound(file, "", kLong);
    const std::vector<float> part = decode_sound(file, "", Seconds(1));
    CHECK(whole.size() == 64000);
    CHECK(part.size() >= 16000);
    CHECK(part.size() < 20000);
    CHECK(difference(whole, part, 0, part.size()) == 0);
  }

  TEST_CASE("resampling: a tone below the Nyquist frequency stays, one above it goes") {
    for (const int rate : {8000, 11025, 22050, 44100, 44101, 48000}) {
      CAPTURE(rate);
      const auto seconds = static_cast<std::size_t>(rate);
      // 0.9 of 4 kHz is the highest frequency that passes from 8 kHz.
      const std::vector<float> out = resample(cosine(3000, rate, seconds), rate, 16000);
      REQUIRE(out.size() == 16000);
      // −80 dB of 0.5, away from the ends, beyond which there are zeros.
      CHECK(difference(out, cosine(3000, 16000, 16000), 400, 15600) < 1e-4F);
      const std::vector<float> constant = resample(std::vector<float>(seconds, 1.0F), rate, 16000);
      CHECK(difference(constant, std::vector<float>(16000, 1.0F), 400, 15600) < 1e-5F);
    }
    for (const int rate : {22050, 44100, 48000}) {
      CAPTURE(rate);
      const std::vector<float> out =
          resample(cosine(9000, rate, static_cast<std::size_t>(rate)), rate, 16000);
      CHECK(difference(out, std::vector<float>(16000), 400, 15600) < 1e-4F);
    }
  }

  TEST_CASE("resampling: the number of samples is rounded up, the same rate changes nothing") {
    CHECK(resample(std::vector<float>(3), 8000, 16000).size() == 6);
    CHECK(resample(std::vector<float>(4), 48000, 16000).size() == 2);
    CHECK(resample({}, 48000, 16000).empty());
    CHECK(resample({1, 2}, 16000, 16000) == std::vector<float>{1, 2});
    const std::string file = sound_file(testing::kWav16, 48000, std::vector<float>(4800));
    CHECK(decode_sound(file, "", kLong).size() == 1600);
  }

  TEST_CASE("truncated files have fewer samples, or are refused by name") {
    for (const int format : {testing::kWav16, testing::kFlac16, testing::kVorbis}) {
      const std::string whole = sound_file(format, 16000, cosine(440, 16000, 4000));
      REQUIRE(refused_sound(whole).empty());
      for (std::size_t length = 0; length < whole.size(); length += 1 + whole.size() / 500) {
        INFO(format << " cut to " << length << " of " << whole.size());
        std::vector<float> samples;
        const std::string why =
            refusal([&] { samples = decode_sound(whole.substr(0, length), "a.bin", kLong); });
        CHECK((why.empty() ? samples.size() <= 4000 : why.starts_with("a.bin: ")));
        if (format == testing::kFlac16) CHECK_FALSE(why.empty());
      }
    }
  }

  TEST_CASE("other formats, rates and values are refused by name") {
    CHECK(refused_sound("ID3") ==
          "a.bin: is no WAV, FLAC or Ogg file (convert it, for example to FLAC, or remove its "
          "sample)");
    CHECK(refused_sound("RIFF1234WAVEdata").starts_with("a.bin: is a damaged WAV file: "));
    CHECK(refused_sound("fLaC" + std::string(60, '\0'))
              .starts_with("a.bin: is a damaged FLAC file: "));
    CHECK(refused_sound("OggS" + std::string(60, '\0'))
              .starts_with("a.bin: is a damaged Ogg file: "));
    CHECK(refused_sound(sound_file(testing::kWav16, 1000, {0})) ==
          "a.bin: has a sample rate of 1000 Hz, not 2000 to 192000 Hz (replace the file, or remove "
          "its sample)");
    CHECK(refused_sound(sound_file(testing::kWav16, 16000, std::vector<float>(33), 33))
              .starts_with("a.bin: has 33 channels, not 1 to 32"));
    CHECK(
        refused_sound(sound_file(testing::kWav16, 16000, {})).starts_with("a.bin: has no samples"));
    const float infinite = std::numeric_limits<float>::infinity();
    for (const float value : {infinite, std::nanf("")})
      CHECK(refused_sound(sound_file(testing::kWavFloat, 16000, {0, value}))
                .starts_with("a.bin: has samples that are infinite or not numbers"));
  }
}

}  // namespace polyphony::exec
