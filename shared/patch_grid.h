// The grid of patches that an image is cut into: patch r · columns + c is in row r and column c.
#pragma once

#include <cmath>
#include <cstdint>

#include "shared/error.h"

namespace polyphony {

struct PatchGrid {
  std::int32_t rows = 0, columns = 0;
  constexpr std::int64_t patches() const { return std::int64_t{rows} * columns; }
  bool operator==(const PatchGrid&) const = default;
};

// Returns the grid of a square image. Fails a CHECK if `patches` is not a square number.
inline PatchGrid square_grid(std::int64_t patches) {
  const auto side =
      static_cast<std::int32_t>(std::llround(std::sqrt(static_cast<double>(patches))));
  POLYPHONY_CHECK(std::int64_t{side} * side == patches, patches << " patches do not form a square");
  return {side, side};
}

}  // namespace polyphony
