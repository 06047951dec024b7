// Bytes as letters, as byte-level tokenizers write them in their vocabularies: a printable byte of
// Latin-1 stands for itself, the others for U+0100 and up.
// Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (GPT-2),
// encoder.py.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "shared/tokenizer/unicode.h"

namespace polyphony::tokenizing {

// By byte.
const std::array<CodePoint, 256>& letters();
void append_letters(std::string& out, std::string_view bytes);
// Returns the byte of a letter, or -1.
int byte_of_letter(CodePoint letter);

}  // namespace polyphony::tokenizing
