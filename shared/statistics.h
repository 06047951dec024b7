// The probability functions behind intervals and tests.
//   normal_below(z)         P(Z <= z) of a standard normal number
//   upper_probability(k, n) Clopper-Pearson upper bound, at 95 %, of the probability of an event
//                           seen k times in n independent trials; k = 0: 1 - 0.05^(1/n), the "rule
//                           of three" 3 / n
//   any_of(p, m)            P(at least one event in m independent trials of probability p)
//   student_below(t, f)     P(T <= t) of Student's t with f degrees of freedom; f = 0: standard
//                           normal
//   central(p, f)           half width of the central interval of Student's t that has probability
//                           p, in units of its scale; f = 0: standard normal
//   binomial_test(k, n, p)  two-sided: P(a count that is at most as likely as k of n)
// Sources: Clopper & Pearson, Biometrika 1934; Hanley & Lippman-Hand, JAMA 1983 (rule of three);
// Abramowitz & Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4 (Student's t).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace polyphony {

// Half width of the central 90 % interval of a normal distribution, in standard deviations.
inline constexpr double kNormal90 = 1.6448536269514722;

inline double normal_below(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

// Returns 1 - (1 - p)^m without loss of precision for small p.
inline double any_of(double p, double m) { return p >= 1 ? 1 : -std::expm1(m * std::log1p(-p)); }

// Returns the nearest-rank quantile: the smallest value with at least the share q of all values at
// or below it. `sorted` must be ascending and not empty.
template <class Value>
Value nearest_rank(const std::vector<Value>& sorted, double q) {
  const auto count = static_cast<double>(sorted.size());
  const double rank = std::ceil(q * count - 1e-9);
  return sorted[static_cast<std::size_t>(rank < 1 ? 0 : rank > count ? count - 1 : rank - 1)];
}

double upper_probability(std::int64_t seen, std::int64_t trials);

double student_below(double t, int freedom);
double central(double probability, int freedom);
double binomial_test(std::int64_t seen, std::int64_t trials, double probability);

}  // namespace polyphony
