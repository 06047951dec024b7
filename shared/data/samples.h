// Samples and batches: a sample is a list of (modality, tokens) items in order. The executor
// and the simulator see the same metadata; only the executor loads pixels and token ids.
//   An image item of `tokens` patches occupies tokens / merge² positions of the language sequence.
//   A latent item is what a diffusion module learns to generate from language tokens; it occupies
//   no position of the sequence. If a sample has several, each is conditioned on the tokens between
//   the previous latent and itself, and the last one also on those after it (for example packed
//   texts and the clips generated from them).
//   `loss_tokens` counts the item's positions that carry a label (text only).
#pragma once

#include <cstdint>
#include <vector>

#include "shared/enum_names.h"
#include "shared/patch_grid.h"

namespace polyphony {

enum class Modality : std::uint8_t { text, image, audio, video, latent };
// As in JSON lines (shared/data/batch_json.h).
constexpr auto names(Modality) {
  return names_of<Modality>("text", "image", "audio", "video", "latent");
}

struct Item {
  Modality modality = Modality::text;
  std::int32_t tokens = 0;       // text: language tokens; image: encoder patches; latent: patches
  std::int32_t loss_tokens = 0;  // text only: the last loss_tokens positions predict a label
  std::int32_t columns = 0;      // image: patches in a row of its grid; 0: the image is a square
  bool operator==(const Item&) const = default;
};
// Returns the item of an image with this grid.
Item image_item(PatchGrid grid);
// Returns the grid of an image's patches. Fails a CHECK if the item has none: an abstract module
// takes any number of tokens.
PatchGrid grid_of(const Item& image);

struct Sample {
  std::uint32_t id = 0;  // position in the data set, or number of the draw
  std::vector<Item> items;
  bool operator==(const Sample&) const = default;
};

// One global batch.
struct Batch {
  std::vector<Sample> samples;
  bool operator==(const Batch&) const = default;
};

// Totals over all samples of a global batch, on whichever ranks they are. Losses are divided by
// them.
struct BatchTotals {
  std::int64_t samples = 0;
  std::int64_t loss_tokens = 0;
  std::int64_t latent_tokens = 0;
  bool operator==(const BatchTotals&) const = default;
};
BatchTotals totals_of(const Batch& batch);

// Most samples of a data set's training or held-out part, so that 32 bits number both.
inline constexpr std::uint64_t kMostListed = std::uint64_t{1} << 31;

// The samples of a data set by position, which is their id. Successive samples with the same items
// take the memory of one: a file of 10^12 tokens is a list of two runs.
// A mixture's list consists of parts, one after another, from which batches are drawn by weight
// (shared/data/mixture_order.h).
class SampleList {
 public:
  // `count` samples from position `first` on.
  struct Run {
    std::uint64_t first = 0, count = 0;
    std::vector<Item> items;
    bool operator==(const Run&) const = default;
  };
  struct Part {
    std::uint64_t first = 0, size = 0;
    std::uint64_t weight = 1;  // relative to the other parts'
    bool operator==(const Part&) const = default;
  };

  SampleList() = default;
  // Lists samples whose ids are their positions.
  SampleList(const std::vector<Sample>& samples);  // NOLINT(google-explicit-constructor)

  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Returns the sample at a position, which must exist.
  Sample operator[](std::uint64_t position) const;
  const std::vector<Run>& runs() const { return runs_; }
  // Returns the parts of a mixture; otherwise all samples as one part.
  std::vector<Part> parts() const;

  void push_back(const Sample& sample) { append(sample.items, 1); }
  // Appends `count` samples with the same items.
  void append(const std::vector<Item>& items, std::uint64_t count);
  // Appends all samples of another list as one part of a mixture.
  void append_part(const SampleList& part, std::uint64_t weight);

  bool operator==(const SampleList&) const = default;

 private:
  std::vector<Run> runs_;
  std::vector<Part> parts_;  // empty: no mixture
  std::uint64_t size_ = 0;
};

}  // namespace polyphony
