// Counter-based random numbers: a value depends only on (seed, index), so every rank draws just the
// values it needs, and all layouts draw the same ones. The generator is splitmix64.
// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace polyphony {

constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  return mix64(mix64(seed) ^ mix64(index + 0x632be59bd9b4e019ull));
}
// Returns a number in the open interval (0, 1): 53 bits, centered, so that its log() is finite.
inline double random_uniform(std::uint64_t seed, std::uint64_t index) {
  return (static_cast<double>(random_bits(seed, index) >> 11) + 0.5) * 0x1.0p-53;
}
// Returns a standard normal number (Box-Muller, cosine branch).
inline double random_normal(std::uint64_t seed, std::uint64_t index) {
  const double radius = std::sqrt(-2.0 * std::log(random_uniform(seed, 2 * index)));
  return radius * std::cos(2.0 * std::numbers::pi * random_uniform(seed, 2 * index + 1));
}

}  // namespace polyphony
