#include "shared/statistics.h"

#include "shared/error.h"

namespace polyphony {
namespace {

// P(at most `seen` of `trials`) at probability p, by logarithms of its terms.
double at_most(std::int64_t seen, std::int64_t trials, double p) {
  const auto n = static_cast<double>(trials);
  double sum = 0;
  for (std::int64_t k = 0; k <= seen; ++k) {
    const auto x = static_cast<double>(k);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) +
                    x * std::log(p) + (n - x) * std::log1p(-p));
  }
  return sum;
}

}  // namespace

double upper_probability(std::int64_t seen, std::int64_t trials) {
  constexpr double kMissed = 0.05;
  POLYPHONY_CHECK(seen >= 0 && seen <= trials && trials > 0, seen << " of " << trials);
  if (seen == trials) return 1;
  if (seen == 0) return -std::expm1(std::log(kMissed) / static_cast<double>(trials));
  double low = 0, high = 1;  // at_most falls with p
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (at_most(seen, trials, middle) > kMissed ? low : high) = middle;
  }
  return high;
}

}  // namespace polyphony
