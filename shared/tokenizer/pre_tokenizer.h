// Steps that split a text into pieces, each of which a model encodes by itself.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shared/tokenizer/pattern.h"
#include "shared/tokenizer/unicode.h"
#include "shared/tokenizer/vocabulary.h"

namespace polyphony::tokenizing {

// What becomes of the parts of a text that match, and of those between them.
enum class Behavior : std::uint8_t {
  removed,               // matches are dropped
  isolated,              // each match is a piece
  merged_with_previous,  // a match ends the piece before it
  merged_with_next,      // a match begins the piece behind it
  contiguous             // matches in a row are one piece
};

struct Split {
  Pattern pattern;
  Behavior behavior;
  bool invert;  // what lies between the matches counts as matches
};
struct SplitByClass {
  bool (*of)(CodePoint);
  Behavior behavior;
};
struct ByteLevel {
  bool add_prefix_space;
  std::optional<Pattern> pattern;  // GPT-2's
  bool letters = true;             // write bytes as letters; false: the model does it
};
struct Metaspace {
  enum class Scheme : std::uint8_t { first, never, always };
  std::string replacement;  // one character
  Scheme scheme;            // which pieces get a replacement in front
  bool split;
};
using PreTokenizerStep = std::variant<Split, SplitByClass, ByteLevel, Metaspace>;

struct Piece {
  std::string_view text;
  std::size_t head = 0;  // as NormalText::head
  Id id = kNoId;         // of an added token, which stays as it is

  // Returns the part from `begin` to `end`.
  Piece part(std::size_t begin, std::size_t end) const {
    return {text.substr(begin, end - begin), head > begin ? std::min(head, end) - begin : 0, kNoId};
  }
};

// Splits the pieces, step by step. Texts that had to be changed go to `made`.
void pre_tokenize(const std::vector<PreTokenizerStep>& steps, std::vector<Piece>& pieces,
                  std::deque<std::string>& made);

}  // namespace polyphony::tokenizing
