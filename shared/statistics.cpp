#include "shared/statistics.h"

#include <algorithm>
#include <numbers>

#include "shared/error.h"

namespace polyphony {
namespace {

double exactly(std::int64_t seen, std::int64_t trials, double p) {
  const auto n = static_cast<double>(trials), x = static_cast<double>(seen);
  return std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) +
                  x * std::log(p) + (n - x) * std::log1p(-p));
}

double at_most(std::int64_t seen, std::int64_t trials, double p) {
  double sum = 0;
  for (std::int64_t k = 0; k <= seen; ++k) sum += exactly(k, trials, p);
  return sum;
}

// P(|T| <= t): finite sums over powers of the cosine of θ = atan(t / √f).
double student_within(double t, int freedom) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(freedom)));
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1, sum = 0;
  for (int k = odd ? 1 : 0; k <= freedom - 2; k += 2) {
    sum += term;
    term *= cosine * cosine * (k + 1) / (k + 2);
  }
  return odd ? (angle + sine * sum) * 2 / std::numbers::pi : sine * sum;
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

double student_below(double t, int freedom) {
  POLYPHONY_CHECK(freedom >= 0, freedom);
  if (freedom == 0) return normal_below(t);
  return 0.5 + std::copysign(student_within(std::abs(t), freedom), t) / 2;
}

double central(double probability, int freedom) {
  POLYPHONY_CHECK(probability > 0 && probability < 1, probability);
  double low = 0, high = 1;
  const auto holds = [&](double t) { return 2 * student_below(t, freedom) - 1 >= probability; };
  while (!holds(high)) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

double binomial_test(std::int64_t seen, std::int64_t trials, double probability) {
  POLYPHONY_CHECK(seen >= 0 && seen <= trials && trials > 0, seen << " of " << trials);
  constexpr double kRounding = 1 + 1e-7;  // counts as likely as what was seen belong to it
  const double most = exactly(seen, trials, probability) * kRounding;
  double sum = 0;
  for (std::int64_t k = 0; k <= trials; ++k)
    if (const double one = exactly(k, trials, probability); one <= most) sum += one;
  return std::min(1.0, sum);
}

}  // namespace polyphony
