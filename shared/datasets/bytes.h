// Integers in the bytes of a file, and file name extensions.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace polyphony {

inline unsigned byte(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}
// Return the integer in `count` bytes from position `at`. The bytes must exist.
inline std::int64_t big_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  std::int64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | byte(bytes, at + i);
  return value;
}
inline std::int64_t little_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  std::int64_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | byte(bytes, at + i);
  return value;
}

// Returns whether a file name ends in one of `endings`, ignoring case. `endings` must be lower
// case.
inline bool ends_in(const std::string& name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
    return name.size() > ending.size() &&
           std::equal(ending.begin(), ending.end(),
                      name.end() - static_cast<std::ptrdiff_t>(ending.size()), [](char a, char b) {
                        return a == std::tolower(static_cast<unsigned char>(b));
                      });
  });
}

}  // namespace polyphony
