// A step plan with one to three bytes changed and its checksum recomputed
// (shared/step/step_part.h), so that the damage reaches the reader behind the checksum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shared/fnv.h"
#include "shared/random.h"

namespace polyphony::test {

inline std::string resealed(const std::string& bytes, std::uint64_t seed) {
  constexpr std::size_t kChecksum = 8;
  std::string body = bytes.substr(0, bytes.size() - kChecksum);
  std::uint64_t count = 0;
  const auto below = [&](std::size_t n) { return random_bits(seed, count++) % n; };
  for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
    char& byte = body[1 + below(body.size() - 1)];  // byte 0, the version, has a test of its own
    byte = below(2) ? static_cast<char>(byte ^ (1 << below(8))) : static_cast<char>(below(256));
  }
  Fnv fnv;
  fnv.add(std::string_view(body));
  for (std::size_t i = 0; i < kChecksum; ++i)
    body.push_back(static_cast<char>(fnv.value() >> (8 * i) & 0xff));
  return body;
}

}  // namespace polyphony::test
