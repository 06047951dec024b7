#include "traces/calibrate/certainty.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "shared/chance/belief.h"
#include "shared/statistics.h"
#include "traces/compare/spread.h"

namespace polyphony::traces {
namespace {

using Eigen::Index;

// Errors with a smaller relative effect on a step are dropped.
constexpr double kNegligible = 1e-4;

double rounded(double value) { return std::round(value * 1e6) / 1e6; }

void add_axes(const ParameterList& list, const std::vector<double>& value,
              const Covariance& covariance, Certainty& certainty) {
  std::vector<std::size_t> seen;
  for (std::size_t p = 0; p < value.size(); ++p)
    if (covariance.informed[p] && value[p] > 0) seen.push_back(p);
  const auto n = static_cast<Index>(seen.size());
  if (n == 0) return;
  Eigen::MatrixXd relative(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      const std::size_t a = seen[static_cast<std::size_t>(i)],
                        b = seen[static_cast<std::size_t>(j)];
      relative(i, j) = covariance.of[a * value.size() + b] / (value[a] * value[b]);
    }
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> axes((relative + relative.transpose()) / 2);
  for (Index axis = n - 1; axis >= 0; --axis) {
    const double fitted = std::sqrt(std::max(0.0, axes.eigenvalues()(axis)));
    const double deviation = fitted * kWidest / std::hypot(fitted, kWidest);
    if (deviation < kNegligible) continue;
    ParameterError error;
    for (Index i = 0; i < n; ++i) {
      const std::size_t p = seen[static_cast<std::size_t>(i)];
      const double sign = ParameterList::is_slowness(p) ? -1 : 1;
      const double change = rounded(sign * deviation * axes.eigenvectors()(i, axis));
      if (std::abs(change) >= kNegligible) error[list.key(p)] = change;
    }
    if (!error.empty()) certainty.errors.push_back(std::move(error));
  }
}

// Single errors of the prior that the fit did not change.
void keep_prior(const ParameterList& list, const Covariance& covariance,
                const HardwareProfile& prior, Certainty& certainty) {
  for (std::size_t p = 0; p < list.count(); ++p) {
    if (covariance.informed[p]) continue;
    const std::string key = list.key(p);
    double error = kUnknown;
    for (const ParameterError& known : prior.certainty.errors)
      if (known.size() == 1 && known.begin()->first == key) error = known.begin()->second;
    certainty.errors.push_back({{key, error}});
  }
}

double layout_error_of(const std::vector<MeasuredRun>& runs, const std::vector<RunError>& errors) {
  constexpr double kMedianToSigma = 1.4826;
  std::vector<Seconds> ratios;  // dimensionless; median() takes Seconds
  for (std::size_t a = 0; a < runs.size() && runs.size() >= 3; ++a) {
    for (std::size_t b = a + 1; b < runs.size(); ++b) {
      const Layout &x = runs[a].program->layout, &y = runs[b].program->layout;
      if (x.modules.size() != y.modules.size()) continue;
      const LayoutDistance apart = layout_distance(x, y);
      if (const double doublings = apart.other + apart.tensor; doublings > 0)
        ratios.emplace_back(std::abs(errors[a].after - errors[b].after) / std::sqrt(doublings));
    }
  }
  if (ratios.size() < 3) return kLayoutError;
  return rounded(kMedianToSigma * median(std::move(ratios)).count());
}

}  // namespace

Certainty fitted_certainty(const ParameterList& list, const std::vector<double>& value,
                           const Covariance& covariance, const HardwareProfile& prior,
                           const std::vector<MeasuredRun>& runs,
                           const std::vector<RunError>& errors, double step_error) {
  Certainty certainty;
  add_axes(list, value, covariance, certainty);
  keep_prior(list, covariance, prior, certainty);
  certainty.layout_error = layout_error_of(runs, errors);
  certainty.residual = rounded(std::hypot(std::log1p(step_error) / central(0.9, certainty.freedom),
                                          std::max(*certainty.layout_error, kLayoutError)));
  return certainty;
}

}  // namespace polyphony::traces
