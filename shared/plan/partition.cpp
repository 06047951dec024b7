#include "shared/plan/partition.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "shared/error.h"

namespace polyphony {

std::vector<int> partition_chain(const std::vector<double>& costs, int stages) {
  const auto units = costs.size();
  const auto parts = static_cast<std::size_t>(stages);
  POLYPHONY_CHECK(stages >= 1 && parts <= units, stages << " stages, " << units << " units");
  std::vector<double> prefix(units + 1, 0.0);
  for (std::size_t i = 0; i < units; ++i) {
    POLYPHONY_CHECK(costs[i] >= 0, "unit " << i << " costs " << costs[i]);
    prefix[i + 1] = prefix[i] + costs[i];
  }
  // best[i]: smallest possible largest stage when the first i units fill p stages; before[i]: the
  // same of p - 1; from[p][i]: where its last stage begins. The last stage's cost falls with its
  // begin j, the best of the stages before it rises: the least of their larger one is where they
  // cross, and the crossing moves right with i.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> before(units + 1, kInfinity), best(units + 1, kInfinity);
  std::vector<std::vector<std::uint32_t>> from(parts + 1);
  best[0] = 0;
  for (std::size_t p = 1; p <= parts; ++p) {
    std::swap(before, best);
    std::fill(best.begin(), best.end(), kInfinity);
    from[p].resize(units + 1);
    std::size_t cross = p - 1;  // the first begin whose stages before are no cheaper than the last
    for (std::size_t i = p; i <= units - (parts - p); ++i) {
      const auto last = [&](std::size_t j) { return prefix[i] - prefix[j]; };
      while (cross < i && before[cross] < last(cross)) ++cross;
      std::size_t begin = cross;
      if (cross > p - 1 && (cross == i || last(cross - 1) <= before[cross])) {
        const double least =
            last(cross - 1);  // the first begin of this cost: units may cost nothing
        const auto ends = prefix.begin() + static_cast<std::ptrdiff_t>(cross);
        begin = static_cast<std::size_t>(
            std::partition_point(prefix.begin() + static_cast<std::ptrdiff_t>(p - 1), ends,
                                 [&](double sum) { return prefix[i] - sum > least; }) -
            prefix.begin());
      }
      best[i] = std::max(before[begin], last(begin));
      from[p][i] = static_cast<std::uint32_t>(begin);
    }
  }
  std::vector<int> sizes(parts);
  std::size_t end = units;
  for (std::size_t p = parts; p >= 1; --p) {
    sizes[p - 1] = static_cast<int>(end - from[p][end]);
    end = from[p][end];
  }
  return sizes;
}

}  // namespace polyphony
