// FNV-1a hash, 64 bits. Detects damage and mix-ups, not deliberate changes.
// Source: Fowler, Noll, Vo; RFC 9923.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace polyphony {

class Fnv {
 public:
  constexpr Fnv() = default;
  constexpr explicit Fnv(std::uint64_t state) : state_(state) {}  // continues from a value()
  // Adds one byte; or, where the published digest is not needed, a whole word at once.
  constexpr void add(std::uint64_t unit) { state_ = (state_ ^ unit) * 0x100000001b3ull; }
  constexpr void add(std::string_view bytes) {
    for (const char byte : bytes) add(std::uint64_t{static_cast<unsigned char>(byte)});
  }
  constexpr std::uint64_t value() const { return state_; }
  std::string digits() const {  // sixteen hexadecimal digits
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(state_));
    return text;
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ull;
};

}  // namespace polyphony
