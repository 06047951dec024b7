// Tokens that are found in the text before it is split, special tokens among them.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "shared/tokenizer/byte_trie.h"
#include "shared/tokenizer/normalizer.h"
#include "shared/tokenizer/pre_tokenizer.h"

namespace polyphony::tokenizing {

struct AddedToken {
  std::string content;
  Id id = kNoId;
  bool single_word = false;             // only where no word character is next to it
  bool lstrip = false, rstrip = false;  // with the blanks to its left, right
  bool normalized = false;              // found in the normalized text
  bool special = false;                 // dropped by decode() when asked
};

class AddedTokens {
 public:
  // Throws InputError at `place` (of their list) if two tokens look alike once they are normalized.
  AddedTokens(std::vector<AddedToken> tokens, const std::vector<NormalizerStep>& normalizer,
              const Place& place);

  Id id(const std::string& content) const;
  // Returns null if the id is not of an added token.
  const AddedToken* token(Id id) const;
  // Returns true if a special token has this content.
  bool is_special(const std::string& content) const;
  // Returns what decode() writes for a token: its content, normalized if it is found so.
  const std::string& written(const AddedToken& token) const;

  // Appends the pieces of a text: added tokens of one kind, and what lies between them.
  void split(const Piece& text, bool normalized, std::vector<Piece>& pieces) const;
  Id largest_id() const;  // kNoId: there are none
  bool any(bool normalized) const { return !finders_[normalized ? 1 : 0].none; }

 private:
  struct Finder {
    ByteTrie trie;
    bool starts[256] = {};  // by first byte
    bool none = true;
  };

  std::vector<AddedToken> tokens_;
  std::vector<std::string> written_;  // by position in tokens_
  std::unordered_map<std::string, std::size_t> by_content_;
  std::unordered_map<Id, std::size_t> by_id_;
  Finder finders_[2];  // by `normalized`
};

}  // namespace polyphony::tokenizing
