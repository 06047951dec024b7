#include "shared/tokenizer/letters.h"

namespace polyphony::tokenizing {
namespace {

constexpr std::array<CodePoint, 256> make_letters() {
  std::array<CodePoint, 256> all{};
  CodePoint next = 256;
  for (CodePoint byte = 0; byte < 256; ++byte) {
    const bool printed =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    all[byte] = printed ? byte : next++;
  }
  return all;
}
constexpr std::array<CodePoint, 256> kLetters = make_letters();
constexpr std::size_t kLetterEnd = 256 + 68;  // 68 bytes are not printable

constexpr std::array<int, kLetterEnd> make_bytes() {
  std::array<int, kLetterEnd> all{};
  for (int& byte : all) byte = -1;
  for (int byte = 0; byte < 256; ++byte) all[kLetters[static_cast<std::size_t>(byte)]] = byte;
  return all;
}
constexpr std::array<int, kLetterEnd> kBytes = make_bytes();

}  // namespace

const std::array<CodePoint, 256>& letters() { return kLetters; }

void append_letters(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) append_utf8(out, kLetters[static_cast<unsigned char>(byte)]);
}

int byte_of_letter(CodePoint letter) { return letter < kLetterEnd ? kBytes[letter] : -1; }

}  // namespace polyphony::tokenizing
