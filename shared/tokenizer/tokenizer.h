// Turns texts into the ids of a published tokenizer and back, exactly as Hugging Face's library
// `tokenizers` does: reads its file tokenizer.json.
//   text → added tokens → normalizer → pre-tokenizer → model (BPE, Unigram, WordPiece) → special
//   tokens (post-processor)
//   Not read, but refused by name: what does not stand in this room's headers, such as truncation,
//   dropout, the normalizer Precompiled, and SentencePiece's .model files.
//   Differs from `tokenizers` 0.23 for rare characters, where tables of Unicode differ. Ours are of
//   Unicode 14 (regular expressions) and 15 (all else); the library's are of 16 in regular
//   expressions, but of 8 for BERT's punctuation and accents and of 9 for NFKC (106 marks, 386
//   accents and 72 compatibility characters, all assigned since 2015).
// Source: github.com/huggingface/tokenizers 0.23; scripts/oracle_tokenizer compares with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyphony {

// Cheap to copy. May be used by several threads at the same time; each of them holds a cache of at
// most 25 MB while it encodes, which later calls use again.
class Tokenizer {
 public:
  // Throws InputError naming the file and the JSON pointer of what is wrong or not supported.
  static Tokenizer load(const std::string& path);
  static Tokenizer parse(const std::string& text, const std::string& file);

  // Returns the ids of the text, with `add_special` also those that the post-processor adds
  // ("[CLS]"). Throws InputError if the text is not valid UTF-8, or if the vocabulary lacks one of
  // its characters and has no token for unknown ones.
  std::vector<std::int32_t> encode(std::string_view text, bool add_special = false) const;

  // An added token that stands in a text as it is ("<|im_end|>"): its bytes, and its place among
  // the text's ids.
  struct Seam {
    std::size_t begin = 0, end = 0, place = 0;
  };
  // Returns the ids without special ones, and sets `seams`, in order. If a text is cut at or behind
  // a seam's end, the ids of what is left are the first `place` ids of the whole text, followed by
  // the ids of what is left from the seam's begin on.
  std::vector<std::int32_t> encode(std::string_view text, std::vector<Seam>& seams) const;

  // Returns the text of the ids. Ids that do not exist are left out, with `skip_special` also
  // special tokens.
  std::string decode(const std::vector<std::int32_t>& ids, bool skip_special = false) const;

  // Returns the id of a token as the file writes it, an added token or one of the model.
  std::optional<std::int32_t> token_id(const std::string& token) const;
  // Returns the largest id plus one: the least size of a model's vocabulary.
  std::int32_t vocabulary_size() const;

 private:
  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  void append_ids(std::string_view text, std::vector<std::int32_t>& ids,
                  std::vector<Seam>* seams) const;

  std::shared_ptr<const Parts> parts_;
};

}  // namespace polyphony
