// What samples contain, beside the metadata that planning needs (shared/data/data.h): pixels
// and token ids.
//   A sample's language sequence is its items in order; an image item takes tokens / merge²
//   positions, an audio item tokens / merge, a text item its token ids. The last `loss_tokens`
//   positions of a text item predict `labels`: the position that predicts label j is the item's
//   position tokens − loss_tokens + j.
// Implementations: exec/data/synthetic_dataset.h (counter-based, any shape), exec/data/recorded_dataset.h
// (recorded shapes, synthetic content), exec/data/easy_vqa.h (real images and questions).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/data/latents.h"
#include "exec/work_input.h"
#include "shared/program/program.h"
#include "shared/scenario/scenario.h"

namespace polyphony::exec {

struct SampleContent {
  std::vector<torch::Tensor>
      images;  // one per image item: [channels, size, size] float32 in [-1, 1]
  std::vector<torch::Tensor> audio;     // one per audio item: [2·tokens, mel_bins] float32
  std::vector<std::int64_t> token_ids;  // of all text items, in order
  std::vector<std::int64_t> labels;     // of all text items, in order
  std::vector<torch::Tensor>
      latents;  // one per latent item: [tokens, latent_channels·patch²] float32
};

struct ContentParts {
  bool images = true;
  bool text = true;
  bool latents = true;
  bool audio = true;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  // The global batch of a training step. Cheap: metadata only.
  virtual Batch batch(std::uint64_t step) const = 0;
  // Training samples of a data set, in order; none when each step draws new ones.
  virtual std::vector<Sample> training() const { return {}; }
  // Held-out samples, in order; empty when the set has none.
  virtual std::vector<Sample> held_out() const = 0;
  // Thread-safe. `sample` comes from batch() or held_out(). What is not wanted may be left empty.
  virtual SampleContent content(const Sample& sample, ContentParts parts) const = 0;
};

// The data set a scenario names. `default_path` is where set-up put downloaded sets. Missing or
// damaged files: InputError.
std::unique_ptr<Dataset> open_dataset(const Scenario& scenario, const std::string& default_path);

// What this rank's chunks read of a work item: pixels, frames, tokens, latents with their noise;
// and what noise and times are drawn with.
struct PackParts {
  bool images = false;
  bool text = false;
  bool latents = false;
  bool audio = false;
  Draw draw{};
};
// Packs one work item for the modules of its branch (exec/work_input.h).
WorkInput pack_work(const Program& program, WorkId work, const Dataset& dataset, torch::Dtype dtype,
                    const PackParts& parts);

}  // namespace polyphony::exec
