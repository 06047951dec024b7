// The samples of a data set of conversations: what a model reads of them, as ids of its tokenizer,
// which of them are labels, and where their images and audio clips are.
//   A conversation is rendered by its template (chat_template.h) and encoded as one text, cut only
//   at images and clips. What the assistant says is predicted, the end mark of its turn included; a
//   token right after an image or clip is not, since only text positions predict. Text after the
//   last label is left out.
//   A text item ends where labels end, so that its last loss_tokens positions predict them
//   (shared/data/data.h).
// Nothing is decoded. An image has the patches of the vision module's image size or, if the image
// processor of the module's published weights keeps images' own sizes, a grid of its own
// (native_images.h); a clip has tokens by its own length, at most the audio module's audio_tokens
// (clip_tokens.h). Without a vision or an audio module, images or clips are left out of the
// samples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shared/data/data.h"
#include "shared/datasets/conversation.h"
#include "shared/datasets/sample_index.h"
#include "shared/datasets/sample_records.h"
#include "shared/files/file_part.h"
#include "shared/scenario/scenario.h"
#include "shared/tokenizer/tokenizer.h"

namespace polyphony {

struct IndexName;  // shared/datasets/conversation_index.h

class ConversationSamples {
 public:
  const std::vector<Sample>& samples() const { return samples_; }  // ids from 0 on
  // Return a sample's text ids, labels, images and audio clips, in order.
  std::span<const std::int32_t> ids(std::size_t sample) const { return record(sample).ids; }
  std::span<const std::int32_t> labels(std::size_t sample) const { return record(sample).labels; }
  std::vector<FilePart> images(std::size_t sample) const;
  std::vector<FilePart> clips(std::size_t sample) const;
  // Returns what was skipped and what was cut, in sentences; empty: nothing.
  const std::string& remarks() const { return remarks_; }
  // Returns the files that have images and clips.
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  friend class ConversationReading;
  friend std::optional<ConversationSamples> indexed_samples(const IndexName& name);
  std::string_view records() const { return index_.file ? index_.records : own_; }
  SampleRecord record(std::size_t sample) const;
  std::vector<FilePart> parts(std::span<const MediaPlace> places) const;

  std::vector<Sample> samples_;
  std::vector<std::size_t> begin_;  // of each sample's record
  std::string own_;                 // the records, if they are in no index
  SampleIndex index_;
  std::vector<std::string> paths_;  // of files with images and clips
  std::string remarks_;
};

// Reads the data set at `path`, the training or the held-out one of the scenario's
// ConversationData. `indexes`: folder of the indexes of tar shards (conversation_index.h), used and
// written there; empty: none. Throws InputError if a file is missing or damaged, the tokenizer does
// not fit the model, no sample is left, or more samples were skipped than the scenario allows.
ConversationSamples read_conversations(const Scenario& scenario, const std::string& path,
                                       const std::string& indexes = {});

// One conversation as the model reads it.
struct EncodedConversation {
  std::vector<Item> items;
  std::vector<std::int32_t> ids, labels;
  std::size_t images = 0, clips = 0;
  bool cut = false;  // labels are lost
};
// The images and audio clips of a conversation.
struct SampleMedia {
  struct Medium {
    Item item;
    std::int64_t rows = 0;  // in the sequence
  };
  std::vector<Medium> images = {}, clips = {};
};
// What of a conversation becomes a sample.
struct SampleShape {
  bool images = false;    // false: images are left out
  bool audio = false;     // false: audio clips are left out
  std::int64_t most = 0;  // rows of a sample; 0: no limit
};
// Returns the conversation without what is beyond `shape.most` rows; without items if no label is
// left. More images or clips than `media` has are counted, too. `front`: ids in front of the first
// text. Throws InputError as Tokenizer::encode() does.
EncodedConversation encode_conversation(const Conversation& conversation, const SampleMedia& media,
                                        const ConversationData& source, const Tokenizer& tokenizer,
                                        const std::string& eos,
                                        const std::vector<std::int32_t>& front,
                                        const SampleShape& shape);

// Throws InputError if the tokenizer has more ids than the language module's vocabulary.
void check_vocabulary(const Scenario& scenario, const Tokenizer& tokenizer,
                      const std::string& file);

// Returns the text of the token "eos_token" in the tokenizer_config.json beside the tokenizer;
// empty if there is none.
std::string eos_token_beside(const std::string& tokenizer);

}  // namespace polyphony
