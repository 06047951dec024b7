// Random numbers for shared/search/random_layout.cpp: a pure function of seed and stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shared/random.h"

namespace polyphony {

class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream) : seed_(mix64(seed) ^ stream) {}
  // Returns an integer in [0, limit).
  int below(int limit) {
    return static_cast<int>(random_bits(seed_, next_++) % static_cast<std::uint64_t>(limit));
  }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }
  template <class Enum>
  Enum any() {
    return static_cast<Enum>(below(static_cast<int>(last_of(Enum{})) + 1));
  }

 private:
  std::uint64_t seed_, next_ = 0;
};

inline std::vector<int> divisors(int value, int most) {
  std::vector<int> found;
  for (int d = 1; d <= std::min(value, most); ++d)
    if (value % d == 0) found.push_back(d);
  return found;
}

}  // namespace polyphony
