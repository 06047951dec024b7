// How large a described training may be.
#pragma once

#include <cstdint>

namespace polyphony {

// Most of the sizes that a scenario may name; far above anything built, low enough that products
// fit 64 bits and lists fit memory.
inline constexpr std::int64_t kMostLayers = 2000;
inline constexpr std::int64_t kMostWidth = 1 << 20;
inline constexpr std::int64_t kMostRanks = 1 << 20;
inline constexpr std::int64_t kMostSamples = 1 << 20;
inline constexpr std::int64_t kMostTokens = 1 << 26;

}  // namespace polyphony
