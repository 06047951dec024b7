// Reads the parts of a tokenizer.json.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "shared/tokenizer/added_tokens.h"
#include "shared/tokenizer/bpe.h"
#include "shared/tokenizer/decoder.h"
#include "shared/tokenizer/normalizer.h"
#include "shared/tokenizer/pre_tokenizer.h"
#include "shared/tokenizer/unigram.h"
#include "shared/tokenizer/word_piece.h"

namespace polyphony::tokenizing {

using Model = std::variant<Bpe, Unigram, WordPiece>;

inline const Vocabulary& vocabulary_of(const Model& model) {
  return std::visit([](const auto& one) -> const Vocabulary& { return one.vocabulary(); }, model);
}

// What a post-processor puts around the ids.
struct Frame {
  std::vector<Id> before{}, after{};
};

struct FileParts {
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  Model model;
  AddedTokens added;
  Frame frame;
  std::vector<DecoderStep> decoder;
};

// Throws InputError naming the file and the JSON pointer of what is wrong or not supported.
FileParts read_tokenizer(const std::string& text, const std::string& file);

}  // namespace polyphony::tokenizing
