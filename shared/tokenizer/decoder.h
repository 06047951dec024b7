// Steps that turn tokens back into text.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "shared/tokenizer/normalizer.h"

namespace polyphony::tokenizing {

struct DecodeLetters {};  // ByteLevel: letters become bytes; what is not UTF-8 becomes U+FFFD
struct DecodeMetaspace {
  std::string replacement;
  bool drop_first;  // replacements in the first token are dropped
};
struct DecodeByteFallback {};  // <0x41> becomes A
struct DecodeReplace {
  Replace replace;
};
struct DecodeStrip {
  CodePoint content;
  std::size_t start, stop;  // most characters that each token loses there
};
struct DecodeFuse {};
struct DecodeWordPiece {
  std::string prefix;
  bool cleanup;  // no blanks in front of English punctuation
};
struct DecodeSuffix {  // BPEDecoder
  std::string suffix;
};
using DecoderStep = std::variant<DecodeLetters, DecodeMetaspace, DecodeByteFallback, DecodeReplace,
                                 DecodeStrip, DecodeFuse, DecodeWordPiece, DecodeSuffix>;

// Returns the text of the tokens; without any step they are joined by blanks.
std::string decode(const std::vector<DecoderStep>& steps, std::vector<std::string> tokens);

}  // namespace polyphony::tokenizing
