// Training data: global batches of samples, each a list of (modality, tokens) items in sequence
// order. The executor and the simulator see the same metadata; only the executor loads pixels and
// token ids.
//   An image item of `tokens` patches occupies tokens / merge² positions of the language sequence.
//   A latent item is what a diffusion module learns to generate from language tokens; it occupies
//   no position of the sequence. If a sample has several, each is conditioned on the tokens between
//   the previous latent and itself, and the last one also on those after it (for example packed
//   texts and the clips generated from them).
//   `loss_tokens` counts the item's positions that carry a label (text only).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "shared/enum_names.h"

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
  bool operator==(const Item&) const = default;
};

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

// An integer distribution of a scenario: constant, uniform, or lognormal (a real number, rounded
// and clamped to [low, high]).
struct Distribution {
  enum class Kind : std::uint8_t { constant, uniform, lognormal } kind = Kind::constant;
  double a = 0;  // constant value | low | mu (median = exp(mu))
  double b = 0;  // unused | high | sigma
  std::int32_t low = 0;
  std::int32_t high = 1 << 30;
  bool operator==(const Distribution&) const = default;
};

// Randomly drawn samples. Each has images, then audio clips, then a text, then possibly a latent.
struct SyntheticData {
  Distribution images{};           // per sample
  Distribution text_tokens{};      // per sample
  Distribution loss_tokens{};      // per sample, at most text_tokens
  Distribution latents{};          // per sample, at most 1
  std::int32_t latent_tokens = 0;  // per latent, as the diffusion module defines
  Distribution clips{};            // audio clips per sample
  std::int32_t clip_tokens = 0;    // per clip of full length, as the audio module defines
  // Side of each image in pixels, rounded to whole cells of merge × merge patches, at least one
  // cell. 0: full size.
  Distribution image_sides{};
  bool operator==(const SyntheticData&) const = default;
};
struct RecordedData {  // JSON lines: {"items": [["image", 64], ["text", 9, 1]]}, one sample a line
  std::string path;
  bool operator==(const RecordedData&) const = default;
};
// A text file as the ids of a tokenizer, cut into samples of Data::sequence tokens. Every token
// predicts the next one.
struct TextData {
  std::string path, tokenizer;  // tokenizer: a tokenizer.json
  std::string held_out{};       // a second text, for evaluation; empty: none
  bool operator==(const TextData&) const = default;
};

// How a conversation becomes one text (shared/datasets/chat_template.h).
enum class ChatTemplate : std::uint8_t { chatml, llama3, vicuna, plain };
constexpr auto names(ChatTemplate) {
  return names_of<ChatTemplate>("chatml", "llama3", "vicuna", "plain");
}
// What happens to a sample that is longer than Data::sequence.
enum class TooLong : std::uint8_t { cut, leave_out };
constexpr auto names(TooLong) { return names_of<TooLong>("cut", "leave_out"); }

// Conversations about images on disk, as the ids of a tokenizer
// (shared/datasets/conversation_samples.h). Labels are what the assistant says.
struct ConversationData {
  std::string path;        // folder, tar shards or JSON lines (shared/datasets/found.h)
  std::string tokenizer;   // a tokenizer.json
  std::string held_out{};  // a second data set, for evaluation; empty: none
  std::string images{};    // folder of image paths in JSON lines; empty: that of the file
  ChatTemplate chat = ChatTemplate::chatml;
  std::string system{};  // system message of conversations that have none; empty: none
  TooLong too_long = TooLong::cut;
  double most_left_out = 0.01;  // largest share of samples that may be skipped
  bool operator==(const ConversationData&) const = default;
};
struct EasyVqaData {  // the PyPI package easy-vqa, unpacked, with real pixels and questions
  std::string path;   // folder; empty: in the setup cache
  bool operator==(const EasyVqaData&) const = default;
};

struct Data {
  std::variant<SyntheticData, RecordedData, EasyVqaData, TextData, ConversationData> source;
  // The shapes of a data set's training samples, after its files have been read
  // (shared/scenario_io/data_set.h). Not part of the scenario's text.
  std::vector<Sample> samples{};
  // What was skipped or cut when the files were read, in sentences; empty: nothing.
  std::string remarks{};
  int global_batch = 1;  // samples per step
  int sequence = 0;      // longest accepted language sequence, tokens; 0: no limit
  std::uint64_t seed = 1;
  bool shuffle = true;  // shuffles a data set again each epoch; false: keeps its own order
  bool operator==(const Data&) const = default;
};

// Returns whether every sample certainly has the same items; false for data other than synthetic.
bool constant_sizes(const Data& data);

// How a model divides images: into at most `patches` patches of `patch` × `patch` pixels, in cells
// of `merge` × `merge` patches.
struct ImageGrid {
  std::int32_t patches = 0, patch = 1, merge = 1;
};
// Returns the most patches that an image can have whose side is drawn from `sides`.
std::int32_t most_patches(const Distribution& sides, const ImageGrid& grid);

// Draws the global batch of a step. Each sample depends on (seed, step, position) only.
Batch draw_batch(const SyntheticData& data, int global_batch, const ImageGrid& grid,
                 std::uint64_t seed, std::uint64_t step);
// Returns the global batch of a step from a list of samples, which is data.samples or a part of it.
// Epochs are permutations of the list drawn from (seed, epoch), or the list in its own order.
// Fails a CHECK if the list is empty.
Batch take_batch(const std::vector<Sample>& samples, const Data& data, std::uint64_t step);

}  // namespace polyphony
