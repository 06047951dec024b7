// What a step trains on: global batches of samples, each a list of (modality, tokens) items in
// sequence order.
//   An image item of `tokens` patches occupies tokens / merge² positions of the language sequence.
//   A latent item is what a diffusion module learns to generate from language tokens: it takes no
//   positions of the sequence. Of several in a sample each reads what stands between the one before
//   and itself, the last one what follows too: texts and the clips made of them, packed.
//   `loss_tokens` counts the item's positions that carry a label (text only).
// The executor and the simulator see the same metadata; only the executor loads pixels and token
// ids.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace polyphony {

enum class Modality : std::uint8_t { text, image, audio, video, latent };

struct Item {
  Modality modality = Modality::text;
  std::int32_t tokens = 0;       // text: language tokens; image: encoder patches; latent: patches
  std::int32_t loss_tokens = 0;  // text only: the last loss_tokens positions predict a label
  bool operator==(const Item&) const = default;
};

struct Sample {
  std::uint32_t id = 0;  // position in the data set, or draw number
  std::vector<Item> items;
  bool operator==(const Sample&) const = default;
};

// One global batch.
struct Batch {
  std::vector<Sample> samples;
  bool operator==(const Batch&) const = default;
};

// Of all samples of a global batch: what losses are divided by, whoever holds them.
struct BatchTotals {
  std::int64_t samples = 0;
  std::int64_t loss_tokens = 0;
  std::int64_t latent_tokens = 0;
  bool operator==(const BatchTotals&) const = default;
};
BatchTotals totals_of(const Batch& batch);

// Integer distributions named in a scenario: constant, uniform, lognormal (of the real, rounded,
// clamped to [low, high]).
struct Distribution {
  enum class Kind : std::uint8_t { constant, uniform, lognormal } kind = Kind::constant;
  double a = 0;  // constant value | low | mu (median = exp(mu))
  double b = 0;  // unused | high | sigma
  std::int32_t low = 0;
  std::int32_t high = 1 << 30;
  bool operator==(const Distribution&) const = default;
};

// Images, then audio clips, then text of `text_tokens`, then a latent.
struct SyntheticData {
  Distribution images{};           // per sample
  Distribution text_tokens{};      // per sample
  Distribution loss_tokens{};      // per sample, at most text_tokens
  Distribution latents{};          // per sample, at most 1
  std::int32_t latent_tokens = 0;  // of each: the diffusion module's
  Distribution clips{};            // per sample
  std::int32_t clip_tokens = 0;    // of each: the audio module's, a clip of full length
  // Of each image, pixels; rounded to whole cells of merge × merge patches, at least one. 0: full size.
  Distribution image_sides{};
  bool operator==(const SyntheticData&) const = default;
};
struct RecordedData {  // JSON lines: {"items": [["image", 64], ["text", 9, 1]]}, one sample a line
  std::string path;
  bool operator==(const RecordedData&) const = default;
};
struct EasyVqaData {  // the PyPI package easy-vqa, unpacked; pixels and questions are real
  std::string path;   // folder; empty: the set-up cache
  bool operator==(const EasyVqaData&) const = default;
};

struct Data {
  std::variant<SyntheticData, RecordedData, EasyVqaData> source;
  // Of a data set: the shapes of its training samples, once its files have been read
  // (shared/program/data_set.h). Not part of the scenario's text.
  std::vector<Sample> samples{};
  int global_batch = 1;  // samples a step
  int sequence = 0;      // longest language sequence accepted, tokens; 0: no limit
  std::uint64_t seed = 1;
  bool shuffle = true;  // a data set's samples anew each epoch; false: in its own order
  bool operator==(const Data&) const = default;
};

// Whether every sample has the same items: known of synthetic data alone.
bool constant_sizes(const Data& data);

// How a model cuts images: at most `patches`, cells of `merge` × `merge` patches of `patch` pixels.
struct ImageGrid {
  std::int32_t patches = 0, patch = 1, merge = 1;
};
// Of an image whose sides are drawn as `sides` says, the most patches that it may have.
std::int32_t most_patches(const Distribution& sides, const ImageGrid& grid);

// The global batch of `step` from a named distribution: depends on (seed, step, position) only.
Batch draw_batch(const SyntheticData& data, int global_batch, const ImageGrid& grid,
                 std::uint64_t seed, std::uint64_t step);
// The global batch of `step` from a list of samples, data.samples or a part of them: epochs are permutations
// drawn from (seed, epoch), or the list as it is.
Batch take_batch(const std::vector<Sample>& samples, const Data& data, std::uint64_t step);

}  // namespace polyphony
