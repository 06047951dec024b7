// Unicode as tokenizers need it: UTF-8, classes of code points, normalization forms, lower case.
//   Unicode 15.0 (utf8proc 2.8, Debian 12). Code points that are assigned later count as
//   unassigned.
// Source: the Unicode Standard, chapter 3 (UTF-8, normalization), and UAX #44 (classes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace polyphony::tokenizing {

using CodePoint = std::uint32_t;

// Returns the number of bytes of a code point from its first byte. The text must be valid UTF-8.
inline std::size_t utf8_size(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// Returns the code point at `at` and moves `at` behind it. The text must be valid UTF-8.
inline CodePoint next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<CodePoint>(static_cast<unsigned char>(text[at + i]));
  };
  const std::size_t size = utf8_size(text[at]);
  CodePoint code = byte(0);
  if (size == 2) code = (code & 0x1F) << 6 | (byte(1) & 0x3F);
  if (size == 3) code = (code & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  if (size == 4)
    code = (code & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  at += size;
  return code;
}

// Returns where the code point that ends at `end` begins. `end` must not be 0.
inline std::size_t code_point_before(std::string_view text, std::size_t end) {
  do --end;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

void append_utf8(std::string& text, CodePoint code);

// Returns the position of the first byte that is not part of valid UTF-8.
std::optional<std::size_t> first_invalid_byte(std::string_view text);
// Returns the text with each longest invalid part replaced by U+FFFD.
std::string repaired_utf8(std::string_view text);

bool is_white_space(CodePoint code);      // property White_Space
bool is_numeric(CodePoint code);          // N
bool is_punctuation(CodePoint code);      // P, and ASCII's symbols
bool is_mark(CodePoint code);             // M
bool is_nonspacing_mark(CodePoint code);  // Mn
bool is_control(CodePoint code);          // Cc, Cf, Co

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
std::string normal_form(std::string_view text, NormalForm form);

// Appends the lower case of one code point; its context is not considered.
void append_lower_case(std::string& text, CodePoint code);

}  // namespace polyphony::tokenizing
