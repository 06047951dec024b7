#include "shared/data/mixture_order.h"

#include <algorithm>
#include <numeric>

#include "shared/error.h"

namespace polyphony {
namespace {

__extension__ using Wide = unsigned __int128;

// Returns the nearest whole number to count · weight / all; a half is rounded up.
std::uint64_t share_of(std::uint64_t count, std::uint64_t weight, std::uint64_t all) {
  return static_cast<std::uint64_t>((Wide(count) * weight * 2 + all) / (Wide(all) * 2));
}

}  // namespace

MixtureOrder::MixtureOrder(const std::vector<std::uint64_t>& weights)
    : parts_(weights.size()), sums_{0} {
  POLYPHONY_CHECK(!weights.empty(), "a mixture has no parts");
  std::iota(parts_.begin(), parts_.end(), std::size_t{0});
  std::stable_sort(parts_.begin(), parts_.end(),
                   [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  for (const std::size_t part : parts_) {
    POLYPHONY_CHECK(weights[part] > 0, "part " << part << " of a mixture has no weight");
    sums_.push_back(sums_.back() + weights[part]);
  }
}

// Returns the end of the first half of the parts from `first` to `last`: both halves have a part,
// and their weights differ as little as possible.
std::size_t MixtureOrder::middle(std::size_t first, std::size_t last) const {
  const auto place = [&](std::size_t index) {
    return sums_.begin() + static_cast<std::ptrdiff_t>(index);
  };
  const std::uint64_t half = sums_[first] + (sums_[last] - sums_[first]) / 2;
  const auto found = std::lower_bound(place(first + 1), place(last - 1), half);
  const auto above = static_cast<std::size_t>(found - sums_.begin());
  if (above == first + 1) return above;
  const auto difference = [&](std::size_t index) {
    const std::uint64_t left = sums_[index] - sums_[first], right = sums_[last] - sums_[index];
    return left > right ? left - right : right - left;
  };
  return difference(above - 1) <= difference(above) ? above - 1 : above;
}

MixtureOrder::Place MixtureOrder::at(std::uint64_t position) const {
  std::size_t first = 0, last = parts_.size();
  while (last - first > 1) {
    const std::size_t between = middle(first, last);
    const std::uint64_t left = sums_[between] - sums_[first], all = sums_[last] - sums_[first];
    const std::uint64_t before = share_of(position, left, all);
    if (share_of(position + 1, left, all) > before) {
      last = between;
      position = before;
    } else {
      first = between;
      position -= before;
    }
  }
  return {parts_[first], position};
}

}  // namespace polyphony
