// Steps that change a text before it is split into pieces.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "shared/tokenizer/pattern.h"
#include "shared/tokenizer/unicode.h"

namespace polyphony::tokenizing {

struct Lowercase {};
struct StripAccents {};  // removes all marks; usually after NFD or NFKD
struct ByteLetters {};   // ByteLevel as a normalizer
struct Nmt {};           // removes control characters; odd blanks become spaces
struct Replace {
  Pattern pattern;
  std::string content;
};
struct Prepend {
  std::string text;
};
struct StripBlanks {
  bool left, right;
};
struct BertNormalizer {
  bool clean, separate_chinese, strip_accents, lowercase;
};
using NormalizerStep = std::variant<NormalForm, Lowercase, StripAccents, ByteLetters, Nmt, Replace,
                                    Prepend, StripBlanks, BertNormalizer>;

// A text and how many of its first bytes stand for the first character of the whole text that it is
// a part of, 0 if it begins further on: what Metaspace's scheme "first" asks for.
struct NormalText {
  std::string text;
  std::size_t head;
};

// Throws InputError if a step makes a text more than 64 times as long (and more than 4 KB): no
// tokenizer does that, and several such steps would fill the memory.
void normalize(const std::vector<NormalizerStep>& steps, NormalText& text);

}  // namespace polyphony::tokenizing
