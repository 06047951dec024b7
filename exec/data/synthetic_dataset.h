// Samples of any shape with random content: uniform pixels and audio features in [-1, 1], uniform
// token ids and labels, standard normal latents. Nothing can be learned from it. Every value is a
// function of (data seed, sample id, position), shared/random.h, so a rank generates only what it
// needs and all layouts see the same data.
#pragma once

#include "exec/data/dataset.h"

namespace polyphony::exec {

// Generates the content of any sample. Images are square: √tokens patches per side.
class SyntheticContent {
 public:
  explicit SyntheticContent(const Scenario& scenario);
  SampleContent operator()(const Sample& sample, ContentParts parts) const;

 private:
  torch::Tensor image(const Sample& sample, const Item& item, std::uint64_t purpose) const;
  torch::Tensor clip(const Sample& sample, const Item& item, std::uint64_t purpose) const;

  std::uint64_t seed_;
  std::int64_t channels_ = 0, patch_ = 0;  // 0: no vision module
  std::int64_t latent_width_ = 0;          // 0: no diffusion module
  std::int64_t mel_bins_ = 0;              // 0: no audio module
  std::uint64_t vocab_;
};

// Draws the shapes of samples from the scenario's distributions. There are no held-out samples,
// since nothing can be learned.
class SyntheticDataset : public Dataset {
 public:
  explicit SyntheticDataset(const Scenario& scenario);
  Batch batch(std::uint64_t step) const override;
  std::vector<Sample> held_out() const override { return {}; }
  SampleContent content(const Sample& sample, ContentParts parts) const override {
    return content_(sample, parts);
  }

 private:
  Data data_;
  ImageGrid grid_;
  SyntheticContent content_;
};

}  // namespace polyphony::exec
