// The WordPiece model: the longest token that a word starts with, then the longest that the rest
// starts with, written with a prefix; one unknown token if that does not reach the word's end.
// Source: Devlin et al., arXiv 1810.04805 (BERT), tokenization.py.
#pragma once

#include "shared/tokenizer/place.h"
#include "shared/tokenizer/vocabulary.h"

namespace polyphony::tokenizing {

class WordPiece {
 public:
  // Words of more than `most` characters are unknown. Throws InputError at `place` if the unknown
  // token is not in the vocabulary.
  WordPiece(Vocabulary vocabulary, const std::string& unknown, std::string prefix, std::size_t most,
            const Place& place);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  void encode(std::string_view word, std::vector<Id>& ids) const;

 private:
  Vocabulary vocabulary_;
  Id unknown_;
  std::string prefix_;
  std::size_t most_;
};

}  // namespace polyphony::tokenizing
