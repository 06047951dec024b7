#include "shared/plan/work_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace polyphony {
namespace {

using Parts = std::array<double, 3>;  // coefficients of 1, tokens, pairs

// Returns the best fit of the coefficients named by `bits`, by Gaussian elimination of the normal
// equations; the others are 0. Nothing if the fit is not determined.
std::optional<Parts> solve(const std::vector<Parts>& rows, unsigned bits) {
  std::vector<std::size_t> used;
  for (std::size_t p = 0; p < 3; ++p)
    if (bits >> p & 1) used.push_back(p);
  const std::size_t n = used.size();
  std::array<std::array<double, 4>, 3> m{};
  for (const Parts& row : rows)
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) m[i][j] += row[used[i]] * row[used[j]];
      m[i][n] += row[used[i]];  // the target of every row is 1
    }
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < n; ++r)
      if (std::abs(m[r][i]) > std::abs(m[pivot][i])) pivot = r;
    constexpr double kSingular = 1e-12;  // columns are of order one
    if (std::abs(m[pivot][i]) < kSingular) return {};
    std::swap(m[i], m[pivot]);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = m[r][i] / m[i][i];
      for (std::size_t c = i; c <= n; ++c) m[r][c] -= factor * m[i][c];
    }
  }
  Parts parts{};
  for (std::size_t i = 0; i < n; ++i) parts[used[i]] = m[i][n] / m[i][i];
  return parts;
}

double misfit(const std::vector<Parts>& rows, const Parts& parts) {
  double sum = 0;
  for (const Parts& row : rows) {
    const double error = row[0] * parts[0] + row[1] * parts[1] + row[2] * parts[2] - 1;
    sum += error * error;
  }
  return sum;
}

}  // namespace

WorkCurve fit_curve(const std::vector<CurvePoint>& points) {
  CurvePoint largest;
  for (const CurvePoint& point : points) {
    largest.tokens = std::max(largest.tokens, point.tokens);
    largest.pairs = std::max(largest.pairs, point.pairs);
    largest.value = std::max(largest.value, point.value);
  }
  std::vector<Parts> rows;  // in units of the largest, over the value in units of its own
  for (const CurvePoint& point : points) {
    if (point.value <= 0) continue;
    const double relative = largest.value / point.value;
    rows.push_back({relative, largest.tokens > 0 ? point.tokens / largest.tokens * relative : 0,
                    largest.pairs > 0 ? point.pairs / largest.pairs * relative : 0});
  }
  if (rows.empty()) return {};
  Parts best{};
  double least = std::numeric_limits<double>::infinity();
  for (const unsigned bits : {2u, 4u, 6u, 1u, 3u, 5u, 7u}) {  // of equal fits, the linear one
    const auto parts = solve(rows, bits);
    if (!parts || *std::min_element(parts->begin(), parts->end()) < 0) continue;
    const double of = misfit(rows, *parts);
    constexpr double kBetter = 1e-18;  // squares of relative errors
    if (of < least - kBetter) least = of, best = *parts;
  }
  const auto per = [&](double part, double of) { return of > 0 ? part * largest.value / of : 0; };
  return {per(best[2], largest.pairs), per(best[1], largest.tokens), best[0] * largest.value};
}

}  // namespace polyphony
