#include "shared/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "shared/error.h"

namespace polyphony::tokenizing {
namespace {

struct Read {
  std::size_t size;  // bytes of the code point, or of the longest start of one
  bool valid;
};

// Reads one code point of arbitrary bytes (the Unicode Standard, table 3-7).
Read read_one(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, true};
  if (first < 0xC2 || first > 0xF4) return {1, false};
  const std::size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return {1, false};
  for (std::size_t i = 2; i < size; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xBF) return {i, false};
  return {size, true};
}

utf8proc_category_t category(CodePoint code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

std::string mapped(std::string_view text, NormalForm form) {
  int options = UTF8PROC_STABLE;
  const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &made,
                                             static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(made, &std::free);
  POLYPHONY_CHECK(size >= 0, utf8proc_errmsg(size));
  return std::string(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
}

}  // namespace

void append_utf8(std::string& text, CodePoint code) {
  const auto put = [&](CodePoint byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

std::optional<std::size_t> first_invalid_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Read one = read_one(text, at);
    if (!one.valid) return at;
    at += one.size;
  }
  return std::nullopt;
}

std::string repaired_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Read one = read_one(text, at);
    if (one.valid)
      repaired += text.substr(at, one.size);
    else
      repaired += "\xEF\xBF\xBD";
    at += one.size;
  }
  return repaired;
}

bool is_white_space(CodePoint code) {
  return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_numeric(CodePoint code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  const utf8proc_category_t kind = category(code);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(CodePoint code) {
  if (code < 0x80)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') ||
           (code >= '[' && code <= '`') || (code >= '{' && code <= '~');
  const utf8proc_category_t kind = category(code);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(CodePoint code) {
  const utf8proc_category_t kind = category(code);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(CodePoint code) { return category(code) == UTF8PROC_CATEGORY_MN; }

bool is_control(CodePoint code) {
  const utf8proc_category_t kind = category(code);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_CO;
}

std::string normal_form(std::string_view text, NormalForm form) {
  // Everything below U+0300 is in NFC, and everything below U+0080 in all forms.
  const unsigned char changes = form == NormalForm::nfc ? 0xCC : 0x80;
  if (std::none_of(text.begin(), text.end(),
                   [&](char c) { return static_cast<unsigned char>(c) >= changes; }))
    return std::string(text);
  // U+11A7 never composes or decomposes, but utf8proc 2.8 loses it behind a Hangul syllable.
  constexpr std::string_view kBeforeFinals = "\xE1\x86\xA7";
  std::string all;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(kBeforeFinals, at);
    all += mapped(text.substr(at, end - at), form);
    if (end == std::string_view::npos) return all;
    all += kBeforeFinals;
    at = end + kBeforeFinals.size();
  }
}

void append_lower_case(std::string& text, CodePoint code) {
  if (code < 0x80) {
    text += static_cast<char>(code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code);
  } else if (code == 0x130) {  // the only one whose lower case is two code points
    text += "i\xCC\x87";
  } else {
    append_utf8(text,
                static_cast<CodePoint>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
}

}  // namespace polyphony::tokenizing
