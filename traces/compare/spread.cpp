#include "traces/compare/spread.h"

#include <algorithm>

#include "shared/error.h"

namespace polyphony::traces {

Seconds quantile(const std::vector<Seconds>& sorted, double q) {
  POLYPHONY_CHECK(!sorted.empty() && q >= 0 && q <= 1, sorted.size() << " times, q " << q);
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - static_cast<double>(below));
}

Seconds median(std::vector<Seconds> times) {
  std::sort(times.begin(), times.end());
  return quantile(times, 0.5);
}

Spread spread(std::vector<Seconds> times) {
  Spread result;
  result.count = times.size();
  if (times.empty()) return result;
  std::sort(times.begin(), times.end());
  result.median = quantile(times, 0.5);
  result.p10 = quantile(times, 0.1);
  result.p25 = quantile(times, 0.25);
  result.p75 = quantile(times, 0.75);
  result.p90 = quantile(times, 0.9);
  for (const Seconds time : times)
    result.mean += std::clamp(time, result.p10, result.p90) / static_cast<double>(times.size());
  return result;
}

double Spread::repeatability() const { return median.count() > 0 ? (p75 - p25) / median / 2 : 0; }

}  // namespace polyphony::traces
