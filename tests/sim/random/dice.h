// Random draws for tests, from the counter-based generator of shared/random.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "shared/random.h"

namespace polyphony::tests {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  double unit() { return random_uniform(seed_, next_++); }  // in (0, 1)
  bool chance(double probability) { return unit() < probability; }
  // In [low, high].
  std::int64_t whole(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(unit() * static_cast<double>(high - low + 1));
  }
  int small(int low, int high) { return static_cast<int>(whole(low, high)); }
  // Log-uniform: each factor of ten has the same probability.
  double spread(double low, double high) { return low * std::pow(high / low, unit()); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(from.size()) - 1))];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1],
                values[static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(i) - 1))]);
    }
  }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

}  // namespace polyphony::tests
