#include "exec/data/log_mel.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "exec/data/decode_sound.h"
#include "shared/datasets/clip_tokens.h"
#include "shared/datasets/sound_length.h"
#include "tests/exec/support/sound_files.h"
#include "tests/exec/support/temp_folder.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

namespace polyphony::exec {
namespace {

using testing::cosine;
using testing::refusal;
using testing::slurp;
using testing::spill;
using testing::TempFolder;
using torch::Tensor;

Module audio_of(int mel_bins, int audio_tokens) {
  Module audio{.name = "audio", .kind = ModuleKind::audio};
  audio.mel_bins = mel_bins;
  audio.audio_tokens = audio_tokens;
  return audio;
}

std::string refused_mel(const std::string& json, int mel_bins = 80) {
  const TempFolder folder;
  spill(folder / "preprocessor_config.json", json);
  const std::string text = refusal([&] { LogMel::of(folder.path(), audio_of(mel_bins, 1500)); });
  return text.empty() ? text : text.substr(text.find("preprocessor_config.json"));
}

}  // namespace

TEST_SUITE("audio") {
  TEST_CASE("mel bands: triangles on Slaney's scale with an area of 1") {
    const Tensor filters = mel_filters(80);
    REQUIRE(filters.sizes() == torch::IntArrayRef({80, 201}));
    // 8 kHz are 15 + 27 · ln 8 / ln 6.4 = 45.24564 mel, so edges are 45.24564 / 81 = 0.5585881 mel
    // apart: 37.23921 Hz up to 1 kHz. 40 Hz, between the edges 37.23921 and 74.47842, is on the
    // falling side of band 0 and on the rising side of band 1; the heights are 2 / 74.47842.
    CHECK(filters[0][1].item<double>() ==
          doctest::Approx((74.47842 - 40) / 37.23921 * 2 / 74.47842).epsilon(1e-6));
    CHECK(filters[1][1].item<double>() ==
          doctest::Approx((40 - 37.23921) / 37.23921 * 2 / 74.47842).epsilon(1e-6));
    CHECK(filters[2][1].item<double>() == 0);
    // A sum over powers 40 Hz apart approximates the area of a band that is much wider.
    const Tensor areas = filters.slice(0, 60, 80).sum(1) * 40;
    CHECK(areas.sub(1).abs().max().item<double>() < 0.05);
    CHECK(mel_filters(128).gt(0).any(1).all().item<bool>());
  }

  TEST_CASE("silence is −1.5 everywhere") {
    // log10(1e-10) = −10, which is the largest value, too: (−10 + 4) / 4.
    const LogMel log_mel(audio_of(80, 10));
    CHECK(log_mel.features({}, 4).equal(torch::full({8, 80}, -1.5F)));
    CHECK(log_mel.features(std::vector<float>(3200), 10).equal(torch::full({20, 80}, -1.5F)));
    CHECK(log_mel.longest().count() == doctest::Approx(0.2));
  }

  TEST_CASE("a tone of 1 kHz: the window's spectrum in closed form") {
    // 1 kHz is power 25 of 40 Hz. A periodic Hann window of 400 samples sums to 200, and has half of
    // that at its neighbors: amplitudes a · 200 / 2 and a · 100 / 2 with a = 0.5, nothing elsewhere.
    const LogMel log_mel(audio_of(80, 50));
    const Tensor features = log_mel.features(cosine(1000, 16000, 15000), 50);
    REQUIRE(features.sizes() == torch::IntArrayRef({100, 80}));
    const Tensor filters = mel_filters(80);
    const Tensor energy =
        filters.select(1, 25) * 2500 + (filters.select(1, 24) + filters.select(1, 26)) * 625;
    const Tensor logs = energy.clamp_min(1e-10).log10();
    const Tensor expected = (logs.clamp_min(logs.max().item<double>() - 8) + 4) / 4;
    CHECK(features[50].allclose(expected.to(torch::kFloat32), 0, 1e-5));
    // 1 kHz is 15 mel: edge 26.85, so the band that is highest at edge 27, band 26, has the most.
    CHECK(features[50].argmax().item<std::int64_t>() == 26);
    // A cosine that is reflected at its beginning continues.
    CHECK(features[0].allclose(features[50], 0, 1e-5));
  }

  TEST_CASE("the features of a clip are the first ones of the clip padded to full length") {
    const LogMel log_mel(audio_of(128, 40));
    std::vector<float> clip = cosine(700, 16000, 3100, 0.3);  // 9.7 tokens
    for (std::size_t i = 0; i < clip.size(); i += 7) clip[i] += 0.2F;
    const Tensor whole = log_mel.features(clip, 40);
    for (const std::int64_t tokens : {10, 12, 38, 39, 40}) {
      CAPTURE(tokens);
      CHECK(log_mel.features(clip, tokens).allclose(whole.narrow(0, 0, 2 * tokens), 0, 1e-6));
    }
    // What is longer is cut, as the extractor cuts at 30 s.
    std::vector<float> longer = clip;
    longer.resize(40 * 320, 0.1F);
    std::vector<float> beyond = longer;
    beyond.insert(beyond.end(), 1000, 0.9F);
    CHECK(log_mel.features(beyond, 40).equal(log_mel.features(longer, 40)));
  }

  TEST_CASE("threads share the features of a module, and decode at the same time") {
    const LogMel log_mel(audio_of(80, 50));
    const std::string file =
        testing::sound_file(testing::kFlac16, 22050, cosine(600, 22050, 20000));
    const auto features = [&] {
      return log_mel.features(decode_sound(file, "", log_mel.longest()), 46);
    };
    const Tensor expected = features();
    std::array<bool, 4> equal{};
    std::vector<std::thread> threads;
    for (bool& one : equal) threads.emplace_back([&] { one = torch::equal(features(), expected); });
    for (std::thread& thread : threads) thread.join();
    CHECK(equal == std::array{true, true, true, true});
  }

  TEST_CASE("settings of other features are refused with file and key") {
    const std::string type = R"({"feature_extractor_type": "WhisperFeatureExtractor")";
    CHECK(refused_mel(type + "}").empty());
    CHECK(refused_mel(type + R"(, "feature_size": 128, "hop_length": 160, "sampling_rate": 16000,
                     "chunk_length": 30, "n_fft": 400, "padding_value": 0.0, "dither": 0.0,
                     "mel_filters": [[0.0, 0.5]], "return_attention_mask": false})",
                      128)
              .empty());
    CHECK(refused_mel(R"({"image_processor_type": "CLIPImageProcessor"})").empty());
    CHECK(refused_mel(type + "}", 128) ==
          "preprocessor_config.json: /feature_size: must be 128, the audio module's mel_bins "
          "(change it, or use another audio model)");
    CHECK(refused_mel(type + R"(, "hop_length": 200})") ==
          "preprocessor_config.json: /hop_length: must be 160 (change it, or use another audio "
          "model)");
    CHECK(refused_mel(type + R"(, "do_normalize": true})")
              .starts_with("preprocessor_config.json: /do_normalize: is not supported"));
    CHECK(refused_mel(R"({"feature_extractor_type": "SeamlessM4TFeatureExtractor"})")
              .starts_with("preprocessor_config.json: /feature_extractor_type: is not supported"));
    CHECK(refused_mel(type + R"(, "win_length": 400})").find("win_length") != std::string::npos);

    const TempFolder folder;
    spill(folder / "preprocessor_config.json", type + R"(, "n_fft": 512})");
    spill(folder / "processor_config.json", R"({"feature_extractor": )" + type + "}}");
    CHECK_NOTHROW(LogMel::of(folder.path(), audio_of(80, 1500)));  // it comes first
    CHECK_NOTHROW(LogMel::of("", audio_of(80, 1500)));
  }

  // Not a test: scripts/oracle_audio compares the results. Each line of the file that
  // POLYPHONY_AUDIO names has an audio file, mel_bins, audio_tokens, and the file for the values,
  // which stays empty if the clip is refused.
  TEST_CASE("audio named by scripts/oracle_audio becomes raw values" *
            doctest::skip(std::getenv("POLYPHONY_AUDIO") == nullptr)) {
    std::ifstream cases(std::getenv("POLYPHONY_AUDIO"));
    std::string file, bins, most, out;
    while (std::getline(cases, file, '\t') && std::getline(cases, bins, '\t') &&
           std::getline(cases, most, '\t') && std::getline(cases, out)) {
      std::string values;
      refusal([&] {
        Model model;
        model.modules = {audio_of(std::stoi(bins), std::stoi(most))};
        const LogMel log_mel(model.modules[0]);
        const std::string bytes = slurp(file);
        const auto length = sound_length(bytes);
        if (!length) return;
        const Tensor result = log_mel.features(decode_sound(bytes, file, log_mel.longest()),
                                               clip_tokens(model, *length).tokens);
        values.assign(static_cast<const char*>(result.const_data_ptr()), result.nbytes());
      });
      spill(out, values);
    }
  }
}

}  // namespace polyphony::exec
