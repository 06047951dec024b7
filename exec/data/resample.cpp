#include "exec/data/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace polyphony::exec {
namespace {

constexpr double kCutoff = 0.95;
constexpr double kZeros = 48;                  // of the sinc, on each side
constexpr double kBeta = 0.1102 * (80 - 8.7);  // Kaiser's β for 80 dB
constexpr std::size_t kLanes = 8;              // sums that a processor adds up side by side

// Returns the modified Bessel function of the first kind and order 0: Σ ((x/2)^k / k!)².
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > 1e-17 * sum; ++k) {
    term *= x / 2 / k * (x / 2 / k);
    sum += term;
  }
  return sum;
}

// Returns h(t) up to a factor; `zeros`: c t.
double windowed_sinc(double zeros) {
  const double place = zeros / kZeros, angle = std::numbers::pi * zeros;
  if (std::abs(place) >= 1) return 0;
  return (angle == 0 ? 1 : std::sin(angle) / angle) *
         bessel_i0(kBeta * std::sqrt(1 - place * place));
}

float dot(const float* a, const float* b, std::size_t count) {
  std::array<float, kLanes> sums{};
  for (std::size_t i = 0; i < count; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  return std::accumulate(sums.begin(), sums.end(), 0.0F);
}

}  // namespace

std::vector<float> resample(const std::vector<float>& samples, std::int64_t from, std::int64_t to) {
  if (from == to || samples.empty()) return samples;
  const std::int64_t divisor = std::gcd(from, to), up = to / divisor, down = from / divisor;
  const auto size = static_cast<std::int64_t>(samples.size());
  const std::int64_t count = (size * up + down - 1) / down;
  const double cutoff =
      kCutoff * std::min(1.0, static_cast<double>(to) / static_cast<double>(from));
  // Output n reads the inputs ⌊n · down / up⌋ − half + 1 to ⌊n · down / up⌋ + half.
  const std::size_t half = (static_cast<std::size_t>(kZeros / cutoff) / kLanes + 1) * kLanes;
  const std::size_t taps = 2 * half;

  const std::int64_t phases = std::min(up, count);  // outputs n and n + up have the same weights
  std::vector<float> weights(static_cast<std::size_t>(phases) * taps);
  std::vector<double> row(taps);
  for (std::int64_t phase = 0; phase < phases; ++phase) {
    const double past = static_cast<double>(phase * down % up) / static_cast<double>(up);
    for (std::size_t tap = 0; tap < taps; ++tap)
      row[tap] =
          windowed_sinc(cutoff * (past + static_cast<double>(half) - 1 - static_cast<double>(tap)));
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    for (std::size_t tap = 0; tap < taps; ++tap)
      weights[static_cast<std::size_t>(phase) * taps + tap] = static_cast<float>(row[tap] / sum);
  }

  std::vector<float> padded(samples.size() + taps);
  std::copy(samples.begin(), samples.end(), padded.begin() + static_cast<std::ptrdiff_t>(half) - 1);
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::int64_t n = 0; n < count; ++n)
    result[static_cast<std::size_t>(n)] =
        dot(padded.data() + n * down / up, weights.data() + static_cast<std::size_t>(n % up) * taps,
            taps);
  return result;
}

}  // namespace polyphony::exec
