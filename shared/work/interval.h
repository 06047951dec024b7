// Half-open intervals, and the partition of a count into nearly equal consecutive parts.
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

// Returns where part `index` begins when `count` elements are split into `parts` consecutive parts
// whose sizes differ by at most one. With index = parts it returns `count`.
constexpr std::int64_t cut_begin(std::int64_t count, std::int64_t parts, std::int64_t index) {
  return count * index / parts;
}

}  // namespace polyphony
