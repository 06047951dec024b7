// The content of samples (pixels, audio frames, token ids, latents), in addition to the metadata
// that planning needs (shared/data/data.h).
//   A sample's language sequence is its items in order. An image item takes tokens / merge²
//   positions, an audio item tokens / merge, a text item its token ids. The last `loss_tokens`
//   positions of a text item predict `labels`: label j is predicted at the item's position
//   tokens − loss_tokens + j.
// Implementations: exec/data/synthetic_dataset.h (counter-based random content, any shape),
// exec/data/recorded_dataset.h (recorded shapes, synthetic content), exec/data/easy_vqa.h (real
// images and questions), exec/data/text_dataset.h (a text), exec/data/token_dataset.h (a file of
// token ids), exec/data/conversation_dataset.h (conversations about images and
// audio), exec/data/mixture_dataset.h (several of the last three, by weight).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/data/latents.h"
#include "exec/work_input.h"
#include "shared/program/program.h"
#include "shared/scenario/scenario.h"

namespace polyphony::exec {

struct SampleContent {
  std::vector<torch::Tensor> images;    // one per image item: [channels, height, width] float32
  std::vector<torch::Tensor> audio;     // one per audio item: [2·tokens, mel_bins] float32
  std::vector<std::int64_t> token_ids;  // of all text items, in order
  std::vector<std::int64_t> labels;     // of all text items, in order
  std::vector<torch::Tensor>
      latents;  // one per latent item: [tokens, latent_channels·patch²] float32
};

// Which content the caller wants.
struct ContentParts {
  bool images = true;
  bool text = true;
  bool latents = true;
  bool audio = true;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  // Returns the global batch of a training step. Cheap: metadata only.
  virtual Batch batch(std::uint64_t step) const = 0;
  // Returns the training samples in order; empty if each step draws new ones.
  virtual SampleList training() const { return {}; }
  // Returns the held-out samples in order; empty if the data set has none.
  virtual std::vector<Sample> held_out() const = 0;
  // Returns what was skipped or cut when the data set was read, in lines; empty: nothing.
  virtual std::string remarks() const { return {}; }
  // Returns the content of `sample`, which comes from batch() or held_out(). Parts that are not
  // wanted may be left empty. A damaged image or clip is replaced (gray, silence) and counted;
  // throws std::runtime_error if too many are. Thread-safe.
  virtual SampleContent content(const Sample& sample, ContentParts parts) const = 0;
  // Returns the text of token ids of `sample`; nothing if the data set has no texts.
  virtual std::optional<std::string> text(const Sample& /*sample*/,
                                          const std::vector<std::int64_t>& /*ids*/) const {
    return {};
  }
};

// Opens the data set that the scenario names. `default_path`: the folder of downloaded data sets
// and of indexes; empty: none. Throws InputError if files are missing or damaged.
std::unique_ptr<Dataset> open_dataset(const Scenario& scenario, const std::string& default_path);

// What this rank's chunks read of a microbatch (pixels, text, latents with their noise, audio
// frames), and the key from which noise and times are drawn.
struct PackParts {
  bool images = false;
  bool text = false;
  bool latents = false;
  bool audio = false;
  Draw draw{};
};
// Packs one microbatch for the modules of its branch (exec/work_input.h).
WorkInput pack_work(const Program& program, WorkId work, const Dataset& dataset, torch::Dtype dtype,
                    const PackParts& parts);

}  // namespace polyphony::exec
