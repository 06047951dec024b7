// Training data: where samples come from (shared/data/samples.h), and how a step's batch is taken
// from them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "shared/data/samples.h"
#include "shared/enum_names.h"

namespace polyphony {

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

// Token ids in files as Megatron-LM writes them (shared/datasets/token_file.h), cut into samples of
// Data::sequence tokens across the ends of documents. Every token predicts the next one.
struct TokenData {
  std::string path;        // NAME of NAME.bin and NAME.idx, or one of the two files
  std::string held_out{};  // a second pair of files, for evaluation; empty: none
  bool operator==(const TokenData&) const = default;
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

// Several data sets, drawn from in proportion to weights. Every part goes through its samples in
// epochs of its own.
struct MixturePart {
  std::variant<TextData, TokenData, ConversationData> source;
  double weight = 1;  // share of the samples, relative to the other parts; counted in millionths
  bool operator==(const MixturePart&) const = default;
};
struct MixtureData {
  std::vector<MixturePart> parts;
  bool operator==(const MixtureData&) const = default;
};

struct Data {
  std::variant<SyntheticData, RecordedData, EasyVqaData, TextData, TokenData, ConversationData,
               MixtureData>
      source;
  // The shapes of a data set's training samples, after its files have been read
  // (shared/scenario_io/data_set.h). Not part of the scenario's text.
  SampleList samples{};
  // What was skipped or cut when the files were read, in sentences; empty: nothing.
  std::string remarks{};
  int global_batch = 1;  // samples per step
  int sequence = 0;      // longest accepted language sequence, tokens; 0: no limit
  std::uint64_t seed = 1;
  bool shuffle = true;  // shuffles a data set again each epoch; false: keeps its own order
  // Where `source` stands in the scenario's file, for messages: of a part of a mixture,
  // "/data/source/mixture/1".
  std::string pointer = "/data/source";
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
// Returns the global batch of a step from data.samples, which must have some. The order is a pure
// function of (seed, position in the run). Epochs are permutations of the samples drawn from
// (seed, epoch), or the samples in their own order. Of a mixture, MixtureOrder says which part a
// position belongs to, and each part has epochs and permutations of its own.
Batch take_batch(const Data& data, std::uint64_t step);

}  // namespace polyphony
