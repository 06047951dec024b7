#include "exec/data/log_mel.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "exec/data/decode_sound.h"
#include "shared/error.h"
#include "shared/files/whole.h"
#include "shared/text/strict_json.h"

namespace polyphony::exec {
namespace {

using torch::Tensor;

constexpr std::int64_t kWindow = 400, kHop = 160;  // samples
constexpr std::int64_t kTokenSamples = 2 * kHop;   // two frames make a token
constexpr std::int64_t kPowers = kWindow / 2 + 1;
constexpr double kLeastPower = 1e-10;
constexpr double kRange = 8;  // powers of ten below the largest value

// Slaney's scale: 3 mels for each 200 Hz up to 1 kHz, then 27 for each factor of 6.4.
constexpr double kLinearEnd = 1000, kMelsAtEnd = 15;
double mel_of(double hertz) {
  return hertz < kLinearEnd ? hertz * 3 / 200
                            : kMelsAtEnd + 27 * std::log(hertz / kLinearEnd) / std::log(6.4);
}
double hertz_of(double mel) {
  return mel < kMelsAtEnd ? mel * 200 / 3
                          : kLinearEnd * std::exp((mel - kMelsAtEnd) * std::log(6.4) / 27);
}

// The keys of WhisperFeatureExtractor.
const ObjectForm kForm{
    "feature_extractor",
    "the settings of an audio feature extractor",
    {{"feature_extractor_type", text_form("WhisperFeatureExtractor"), "its class", true},
     {"feature_size", integer_form(1), "mel bands; 80 when absent"},
     {"sampling_rate", integer_form(1), "Hz"},
     {"hop_length", integer_form(1), "samples from frame to frame"},
     {"n_fft", integer_form(1), "samples of a frame"},
     {"padding_value", number_form(-1e9, 1e9), "what follows a clip"},
     {"dither", number_form(0, 1e9), "standard deviation of noise that is added"},
     {"do_normalize", boolean_form(), "normalizes the samples"},
     // These do not change the frames of a clip.
     {"chunk_length", integer_form(1), "seconds of the padded clip: 2 · audio_tokens frames here"},
     {"n_samples", integer_form(1), "the same in samples"},
     {"nb_max_frames", integer_form(1), "the same in frames"},
     {"mel_filters", list_form(list_form(number_form(-1e9, 1e9))), "weights, in old files"},
     {"padding_side", choice_form({"right"}), "where a clip is padded"},
     {"return_attention_mask", boolean_form(), "whether frames of the clip are marked"},
     {"processor_class", text_form("WhisperProcessor"), "the processor of the whole model"}},
    {}};

// Throws InputError if the settings are not those of this file.
void check(const JsonValue& json, std::int64_t mel_bins) {
  const char* kType = "feature_extractor_type";
  if (!json.is_object() || !json.has(kType)) return;  // the file of an image processor
  if (!json.at(kType).is_text() || json.at(kType).text() != "WhisperFeatureExtractor")
    json.refuse_at(kType, "is not supported", "use an audio model with WhisperFeatureExtractor");
  json.check(object_form(kForm));
  const auto expect = [&](const char* key, double otherwise, double wanted) {
    double value = otherwise;
    json.read(key, value);
    if (value != wanted)
      json.refuse_at(
          key,
          "must be " + std::to_string(static_cast<std::int64_t>(wanted)) +
              (key == std::string("feature_size") ? ", the audio module's mel_bins" : ""),
          "change it, or use another audio model");
  };
  expect("feature_size", 80, static_cast<double>(mel_bins));
  expect("sampling_rate", kSoundRate, kSoundRate);
  expect("hop_length", kHop, kHop);
  expect("n_fft", kWindow, kWindow);
  expect("padding_value", 0, 0);
  expect("dither", 0, 0);
  bool normalized = false;
  json.read("do_normalize", normalized);
  if (normalized) json.refuse_at("do_normalize", "is not supported", "set it to false");
}

}  // namespace

Tensor mel_filters(std::int64_t bands) {
  std::vector<double> edges;  // band b rises from edge b, is highest at b + 1, ends at b + 2
  const double highest = static_cast<double>(kSoundRate) / 2;
  for (std::int64_t i = 0; i < bands + 2; ++i)
    edges.push_back(
        hertz_of(mel_of(highest) * static_cast<double>(i) / static_cast<double>(bands + 1)));
  Tensor filters = torch::zeros({bands, kPowers}, torch::kFloat64);
  auto weights = filters.accessor<double, 2>();
  for (std::int64_t band = 0; band < bands; ++band)
    for (std::int64_t k = 0; k < kPowers; ++k) {
      const double hertz = static_cast<double>(k * kSoundRate) / static_cast<double>(kWindow);
      const double* edge = edges.data() + band;
      const double rising = (hertz - edge[0]) / (edge[1] - edge[0]);
      const double falling = (edge[2] - hertz) / (edge[2] - edge[1]);
      weights[band][k] = std::max(0.0, std::min(rising, falling)) * 2 / (edge[2] - edge[0]);
    }
  return filters;
}

LogMel::LogMel(const Module& audio)
    : most_tokens_(audio.audio_tokens),
      window_(torch::hann_window(kWindow, torch::kFloat64)),
      filters_(mel_filters(audio.mel_bins)) {}

LogMel LogMel::of(const std::string& folder, const Module& audio) {
  const std::string all = folder + "/processor_config.json";
  const std::string own = folder + "/preprocessor_config.json";
  // Without nulls, which mean the default.
  const auto parsed = [](const std::string& file) {
    return JsonValue::merge(JsonValue::parse("{}", file), JsonValue::parse(read_file(file), file));
  };
  bool found = false;
  // Since version 5, transformers writes all processors of a model to one file.
  if (!folder.empty() && std::filesystem::exists(all))
    if (const JsonValue root = parsed(all); root.is_object() && root.has("feature_extractor")) {
      check(root.at("feature_extractor"), audio.mel_bins);
      found = true;
    }
  if (!found && !folder.empty() && std::filesystem::exists(own)) check(parsed(own), audio.mel_bins);
  return LogMel(audio);
}

Tensor LogMel::features(const std::vector<float>& samples, std::int64_t tokens) const {
  const std::int64_t own = kTokenSamples * tokens;
  // The largest value is that of all frames, so those are computed, too, that begin in the clip and
  // are centered behind it. Of a clip of full length there are none, as in Whisper's.
  const std::int64_t length = std::min(own + kWindow, kTokenSamples * most_tokens_);
  const std::int64_t given = std::min(own, static_cast<std::int64_t>(samples.size()));
  Tensor padded = torch::zeros({length}, torch::kFloat64);
  for (std::int64_t i = 0; i < given; ++i)
    padded.data_ptr<double>()[i] = samples[static_cast<std::size_t>(i)];
  const Tensor spectrum =
      torch::stft(padded, kWindow, kHop, kWindow, window_, /*center=*/true, "reflect",
                  /*normalized=*/false, /*onesided=*/true, /*return_complex=*/true);
  const Tensor powers = spectrum.narrow(1, 0, spectrum.size(1) - 1).abs().square();
  const Tensor logs = filters_.matmul(powers).clamp_min(kLeastPower).log10();
  return logs.clamp_min(logs.max().item<double>() - kRange)
      .narrow(1, 0, 2 * tokens)
      .add(4)
      .div(4)
      .t()
      .to(torch::kFloat32)
      .contiguous();
}

Seconds LogMel::longest() const {
  return Seconds(static_cast<double>(kTokenSamples * most_tokens_) /
                 static_cast<double>(kSoundRate));
}

}  // namespace polyphony::exec
