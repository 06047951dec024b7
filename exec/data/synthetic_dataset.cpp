#include "exec/data/synthetic_dataset.h"

#include <cmath>

#include "exec/data/latents.h"
#include "shared/error.h"
#include "shared/model/data_modules.h"
#include "shared/random.h"
#include "shared/scenario/image_tokens.h"
#include "shared/scenario/typical_batch.h"

namespace polyphony::exec {
namespace {

// Streams of random numbers: one per sample and purpose.
enum class Purpose : std::uint64_t {
  token_ids = 1,
  labels = 2,
  first_image = 3,
  first_clip = 1 << 20
};

std::uint64_t stream(std::uint64_t seed, std::uint32_t sample, std::uint64_t purpose) {
  return mix64(mix64(mix64(seed) ^ sample) + purpose);
}

std::vector<std::int64_t> random_ids(std::uint64_t seed, std::int64_t count, std::uint64_t vocab) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int64_t>(random_bits(seed, i) % vocab);
  return ids;
}

// Uniform in [-1, 1].
torch::Tensor random_values(std::uint64_t seed, const std::vector<std::int64_t>& shape) {
  torch::Tensor values = torch::empty(shape, torch::kFloat32);
  float* value = values.data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i)
    value[i] = static_cast<float>(2 * random_uniform(seed, static_cast<std::uint64_t>(i)) - 1);
  return values;
}

}  // namespace

SyntheticContent::SyntheticContent(const Scenario& scenario)
    : seed_(scenario.data.seed),
      vocab_(static_cast<std::uint64_t>(
          scenario.model.modules[language_module(scenario.model).value].vocab)) {
  if (const Module* vision = vision_module(scenario.model)) {
    channels_ = vision->channels;
    patch_ = vision->patch;
  }
  if (const Module* diffusion = diffusion_module(scenario.model))
    latent_width_ = latent_width(*diffusion);
  if (const Module* audio = audio_module(scenario.model)) mel_bins_ = audio->mel_bins;
}

SampleContent SyntheticContent::operator()(const Sample& sample, ContentParts parts) const {
  SampleContent content;
  std::int64_t tokens = 0, labels = 0;
  auto image = static_cast<std::uint64_t>(Purpose::first_image);
  auto clip = static_cast<std::uint64_t>(Purpose::first_clip);
  for (std::size_t i = 0; i < sample.items.size(); ++i) {
    const Item& item = sample.items[i];
    switch (item.modality) {
      case Modality::text:
        tokens += item.tokens;
        labels += item.loss_tokens;
        break;
      case Modality::image:
        if (parts.images) content.images.push_back(this->image(sample, item, image++));
        break;
      case Modality::audio:
        if (parts.audio) content.audio.push_back(this->clip(sample, item, clip++));
        break;
      case Modality::latent:
        POLYPHONY_CHECK(
            latent_width_ > 0,
            "sample " << sample.id << " has a latent, but the model has no diffusion module");
        if (parts.latents)
          content.latents.push_back(synthetic_latent(
              seed_, {sample.id, static_cast<std::uint32_t>(i)}, item.tokens, latent_width_));
        break;
      case Modality::video:
        POLYPHONY_CHECK(false, "sample " << sample.id << " has video, which is not supported");
    }
  }
  if (parts.text) {
    content.token_ids = random_ids(
        stream(seed_, sample.id, static_cast<std::uint64_t>(Purpose::token_ids)), tokens, vocab_);
    content.labels = random_ids(
        stream(seed_, sample.id, static_cast<std::uint64_t>(Purpose::labels)), labels, vocab_);
  }
  return content;
}

torch::Tensor SyntheticContent::image(const Sample& sample, const Item& item,
                                      std::uint64_t purpose) const {
  POLYPHONY_CHECK(patch_ > 0,
                  "sample " << sample.id << " has an image, but the model has no vision module");
  const PatchGrid grid = grid_of(item);
  return random_values(stream(seed_, sample.id, purpose),
                       {channels_, grid.rows * patch_, grid.columns * patch_});
}

torch::Tensor SyntheticContent::clip(const Sample& sample, const Item& item,
                                     std::uint64_t purpose) const {
  POLYPHONY_CHECK(mel_bins_ > 0,
                  "sample " << sample.id << " has audio, but the model has no audio module");
  return random_values(stream(seed_, sample.id, purpose),
                       {2 * std::int64_t{item.tokens}, mel_bins_});
}

SyntheticDataset::SyntheticDataset(const Scenario& scenario)
    : data_(scenario.data), grid_(image_grid(scenario.model)), content_(scenario) {}

Batch SyntheticDataset::batch(std::uint64_t step) const {
  return draw_batch(std::get<SyntheticData>(data_.source), data_.global_batch, grid_, data_.seed,
                    step);
}

}  // namespace polyphony::exec
