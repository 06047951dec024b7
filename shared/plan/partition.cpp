#include "shared/plan/partition.h"

#include <algorithm>
#include <limits>

#include "shared/error.h"

namespace polyphony {

std::vector<int> partition_chain(const std::vector<double>& costs, int stages) {
  const auto units = costs.size();
  const auto parts = static_cast<std::size_t>(stages);
  POLYPHONY_CHECK(stages >= 1 && parts <= units, stages << " stages, " << units << " units");
  std::vector<double> prefix(units + 1, 0.0);
  for (std::size_t i = 0; i < units; ++i) prefix[i + 1] = prefix[i] + costs[i];
  // best[p][i]: smallest possible largest stage when the first i units fill p stages; from[p][i]:
  // where its last stage begins.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(parts + 1, std::vector<double>(units + 1, kInfinity));
  std::vector<std::vector<std::size_t>> from(parts + 1, std::vector<std::size_t>(units + 1, 0));
  best[0][0] = 0;
  for (std::size_t p = 1; p <= parts; ++p) {
    for (std::size_t i = p; i <= units - (parts - p); ++i) {
      for (std::size_t j = p - 1; j < i; ++j) {
        const double largest = std::max(best[p - 1][j], prefix[i] - prefix[j]);
        if (largest < best[p][i]) {
          best[p][i] = largest;
          from[p][i] = j;
        }
      }
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
