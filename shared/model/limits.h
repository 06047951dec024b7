// Upper limits of the sizes that a scenario may state.
#pragma once

#include <cstdint>

namespace polyphony {

// Far above any system in existence, and low enough that products fit in 64 bits and lists fit in
// memory.
inline constexpr std::int64_t kMostLayers = 2000;
inline constexpr std::int64_t kMostWidth = 1 << 20;
inline constexpr std::int64_t kMostRanks = 1 << 20;
inline constexpr std::int64_t kMostSamples = 1 << 20;
inline constexpr std::int64_t kMostTokens = 1 << 26;

}  // namespace polyphony
