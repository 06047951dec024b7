// Half-open intervals, and how a count is cut into nearly equal runs.
#pragma once

#include <compare>
#include <cstdint>

namespace polyphony {

// Half-open interval of positions along one dimension of a global tensor.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  constexpr std::int64_t size() const { return end - begin; }
  auto operator<=>(const Interval&) const = default;
};

// Start of part `index` when `count` things are cut into `parts` runs whose sizes differ by at most
// one.
constexpr std::int64_t cut_begin(std::int64_t count, std::int64_t parts, std::int64_t index) {
  return count * index / parts;
}

}  // namespace polyphony
