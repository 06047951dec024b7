#include "sim/judged/statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "shared/error.h"

namespace polyphony::sim {

double median(std::vector<double> values) {
  POLYPHONY_CHECK(!values.empty(), "the median of an empty list");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Errors summarize(std::vector<double> errors) {
  Errors result;
  result.count = errors.size();
  if (errors.empty()) return result;
  for (const double error : errors) {
    result.mean += std::abs(error);
    result.bias += error;
    if (std::abs(error) > std::abs(result.worst)) result.worst = error;
  }
  const auto n = static_cast<double>(errors.size());
  result.mean /= n;
  result.bias /= n;
  for (double& error : errors) error = std::abs(error);
  result.median = median(std::move(errors));
  return result;
}

std::optional<double> kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  POLYPHONY_CHECK(a.size() == b.size(), a.size() << " and " << b.size());
  double agree = 0, untied_a = 0, untied_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = i + 1; j < a.size(); ++j) {
      const int s = (a[i] < a[j]) - (a[j] < a[i]), t = (b[i] < b[j]) - (b[j] < b[i]);
      agree += s * t;
      untied_a += s != 0;
      untied_b += t != 0;
    }
  if (untied_a == 0 || untied_b == 0) return std::nullopt;
  return agree / std::sqrt(untied_a * untied_b);
}

double regret(const std::vector<double>& predicted, const std::vector<double>& measured) {
  POLYPHONY_CHECK(!predicted.empty() && predicted.size() == measured.size(), predicted.size());
  const auto chosen = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
  return measured[static_cast<std::size_t>(chosen)] /
             *std::min_element(measured.begin(), measured.end()) -
         1;
}

}  // namespace polyphony::sim
