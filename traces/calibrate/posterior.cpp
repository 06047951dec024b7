#include "traces/calibrate/posterior.h"

#include <Eigen/Dense>
#include <cmath>

#include "shared/error.h"
#include "shared/statistics.h"

namespace polyphony::traces {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kReweightings = 100;
constexpr double kSettled = 1e-10;

struct Linear {
  MatrixXd effects;  // rows × errors
  VectorXd surprise, own;
};

Linear linear_of(const std::vector<SurpriseRow>& rows, std::size_t errors,
                 const std::vector<std::size_t>& used) {
  Linear problem;
  const auto n = static_cast<Index>(used.size());
  problem.effects.resize(n, static_cast<Index>(errors));
  problem.surprise.resize(n);
  problem.own.resize(n);
  for (Index i = 0; i < n; ++i) {
    const SurpriseRow& row = rows[used[static_cast<std::size_t>(i)]];
    POLYPHONY_CHECK(row.effects.size() == errors && row.own > 0, "a row of another profile");
    for (Index k = 0; k < problem.effects.cols(); ++k)
      problem.effects(i, k) = row.effects[static_cast<std::size_t>(k)];
    problem.surprise(i) = row.surprise;
    problem.own(i) = row.own;
  }
  return problem;
}

// Solution for the free errors; fixed errors are at their bounds.
VectorXd solve(const Linear& problem, const VectorXd& weight, const VectorXd& held,
               const std::vector<bool>& free) {
  std::vector<Index> at;
  for (Index k = 0; k < held.size(); ++k)
    if (free[static_cast<std::size_t>(k)]) at.push_back(k);
  const auto n = static_cast<Index>(at.size());
  MatrixXd effects(problem.effects.rows(), n);
  for (Index k = 0; k < n; ++k)
    effects.col(k) = problem.effects.col(at[static_cast<std::size_t>(k)]);
  const VectorXd left = problem.surprise - problem.effects * held;
  const MatrixXd normal =
      MatrixXd::Identity(n, n) + effects.transpose() * weight.asDiagonal() * effects;
  const VectorXd found = normal.ldlt().solve(effects.transpose() * (weight.asDiagonal() * left));
  VectorXd z = held;
  for (Index k = 0; k < n; ++k) z(at[static_cast<std::size_t>(k)]) = found(k);
  return z;
}

// Errors that would leave their bounds are fixed there, one more in each iteration.
VectorXd bounded(const Linear& problem, const VectorXd& weight, const ZBounds& bounds) {
  const Index n = problem.effects.cols();
  VectorXd held = VectorXd::Zero(n);
  std::vector<bool> free(static_cast<std::size_t>(n), true);
  for (;;) {
    const VectorXd z = solve(problem, weight, held, free);
    if (bounds.low.empty()) return z;
    bool inside = true;
    for (Index k = 0; k < n; ++k) {
      const auto at = static_cast<std::size_t>(k);
      if (!free[at] || (z(k) >= bounds.low[at] && z(k) <= bounds.high[at])) continue;
      held(k) = z(k) < bounds.low[at] ? bounds.low[at] : bounds.high[at];
      free[at] = false;
      inside = false;
    }
    if (inside) return z;
  }
}

Posterior posterior_of(const std::vector<SurpriseRow>& rows, std::size_t errors,
                       const std::vector<std::size_t>& used, int freedom, const ZBounds& bounds) {
  const auto n = static_cast<Index>(errors);
  const Linear problem = linear_of(rows, errors, used);
  const double reach = central(0.9, freedom);
  VectorXd weight = problem.own.array().square().inverse();
  VectorXd z = VectorXd::Zero(n);
  for (int round = 0; round < kReweightings && !used.empty(); ++round) {
    const VectorXd before = z;
    z = bounded(problem, weight, bounds);
    const VectorXd left = (problem.surprise - problem.effects * z).cwiseQuotient(problem.own);
    for (Index i = 0; i < left.size(); ++i) {
      const double full = 1 / (problem.own(i) * problem.own(i));
      weight(i) = std::abs(left(i)) <= reach ? full : full * reach / std::abs(left(i));
    }
    if ((z - before).cwiseAbs().maxCoeff() < kSettled) break;
  }
  const MatrixXd normal = MatrixXd::Identity(n, n) +
                          problem.effects.transpose() * weight.asDiagonal() * problem.effects;
  const MatrixXd covariance = normal.ldlt().solve(MatrixXd::Identity(n, n));
  Posterior result;
  result.mean.assign(z.data(), z.data() + n);
  for (Index a = 0; a < n; ++a)
    for (Index b = 0; b < n; ++b)
      result.covariance.push_back((covariance(a, b) + covariance(b, a)) / 2);
  return result;
}

UnseenRow judge(const std::vector<SurpriseRow>& rows, std::size_t row, std::size_t errors,
                const std::vector<std::size_t>& used, int freedom, const ZBounds& bounds) {
  std::vector<std::size_t> others;
  for (const std::size_t other : used)
    if (other != row) others.push_back(other);
  const Posterior by = posterior_of(rows, errors, others, freedom, bounds);
  return {rows[row].surprise - by.shift(rows[row].effects),
          std::hypot(by.deviation(rows[row].effects), rows[row].own)};
}

}  // namespace

double Posterior::deviation(const std::vector<double>& effects) const {
  const std::size_t n = mean.size();
  double squares = 0;
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b) squares += effects[a] * covariance[a * n + b] * effects[b];
  return std::sqrt(std::max(0.0, squares));
}

double Posterior::shift(const std::vector<double>& effects) const {
  double sum = 0;
  for (std::size_t k = 0; k < mean.size(); ++k) sum += effects[k] * mean[k];
  return sum;
}

PosteriorFit fit_posterior(const std::vector<SurpriseRow>& rows, std::size_t errors, int freedom,
                           const ZBounds& bounds) {
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < rows.size(); ++i) used.push_back(i);
  PosteriorFit result;
  result.unseen.resize(rows.size());
  for (bool found = true; found;) {
    found = false;
    std::size_t furthest = 0;
    double most = central(kOutlierProbability, freedom);
    for (const std::size_t row : used) {
      result.unseen[row] = judge(rows, row, errors, used, freedom, bounds);
      const double away = std::abs(result.unseen[row].miss) / result.unseen[row].deviation;
      if (away > most) most = away, furthest = row, found = true;
    }
    if (!found) break;
    result.unseen[furthest].outlier = true;
    std::erase(used, furthest);
  }
  result.posterior = posterior_of(rows, errors, used, freedom, bounds);
  return result;
}

std::vector<double> independent_ways(const std::vector<double>& covariance) {
  const auto n =
      static_cast<Index>(std::llround(std::sqrt(static_cast<double>(covariance.size()))));
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::LLT<MatrixXd> root(MatrixXd(Eigen::Map<const Rows>(covariance.data(), n, n)));
  POLYPHONY_CHECK(root.info() == Eigen::Success, "the covariance is not positive semidefinite");
  const Rows lower = root.matrixL();
  return {lower.data(), lower.data() + n * n};
}

}  // namespace polyphony::traces
