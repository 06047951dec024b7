// The unigram model: of all ways to write a text as tokens, the one with the largest sum of scores
// (log-probabilities), found by Viterbi's algorithm. A character that no token covers costs ten
// more than the least likely token; several of them in a row are one unknown token. Source: Kudo,
// arXiv 1804.10959; ties, unknown characters as in Hugging Face's `tokenizers`.
#pragma once

#include <array>

#include "shared/tokenizer/byte_trie.h"
#include "shared/tokenizer/place.h"
#include "shared/tokenizer/vocabulary.h"

namespace polyphony::tokenizing {

class Unigram {
 public:
  using Piece = std::pair<std::string, double>;  // token, score; the id is the position
  // `unknown` is an id or kNoId; a text with an unknown character is then refused.
  Unigram(const std::vector<Piece>& pieces, Id unknown, bool byte_fallback, Place place);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  void encode(std::string_view text, std::vector<Id>& ids) const;

 private:
  void append(std::string_view token, std::vector<Id>& ids) const;
  [[noreturn]] void refuse() const;

  Vocabulary vocabulary_;
  std::vector<double> scores_;  // by id
  ByteTrie trie_;
  double unknown_score_ = 0;
  Id unknown_;
  std::array<Id, 256> fallbacks_{};  // by byte; all kNoId without byte_fallback
  Place place_;
};

}  // namespace polyphony::tokenizing
