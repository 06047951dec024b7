#include "traces/calibrate/fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "shared/error.h"

namespace polyphony::traces {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kHuber = 1.345;        // 95 % efficient under normal noise
constexpr double kMadToSigma = 1.4826;  // of a normal distribution
// Ridge that remains without noise; it keeps singular systems solvable.
constexpr double kLeastVariance = 1e-13;
constexpr int kRounds = 60;

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns v ≥ 0 that minimizes ‖A v − b‖; A is square or tall, with full column rank.
VectorXd nonnegative(const MatrixXd& a, const VectorXd& b) {
  const Index n = a.cols();
  VectorXd v = VectorXd::Zero(n);
  std::vector<Index> free;
  std::vector<bool> is_free(static_cast<std::size_t>(n), false);
  const double scale = std::max(1e-300, (a.transpose() * b).cwiseAbs().maxCoeff());
  for (Index round = 0; round < 3 * n + 10; ++round) {
    const VectorXd gradient = a.transpose() * (b - a * v);
    Index best = -1;
    for (Index j = 0; j < n; ++j) {
      if (is_free[static_cast<std::size_t>(j)] || gradient(j) <= 1e-15 * scale) continue;
      if (best < 0 || gradient(j) > gradient(best)) best = j;
    }
    if (best < 0) break;
    free.push_back(best);
    is_free[static_cast<std::size_t>(best)] = true;
    while (!free.empty()) {
      MatrixXd part(a.rows(), static_cast<Index>(free.size()));
      for (std::size_t k = 0; k < free.size(); ++k)
        part.col(static_cast<Index>(k)) = a.col(free[k]);
      const VectorXd trial = part.colPivHouseholderQr().solve(b);
      double step = 1;
      for (std::size_t k = 0; k < free.size(); ++k) {
        const double to = trial(static_cast<Index>(k));
        const double from = v(free[k]);
        if (to <= 0) step = std::min(step, from > to ? from / (from - to) : 0);
      }
      for (std::size_t k = 0; k < free.size(); ++k) {
        double& value = v(free[k]);
        value += step * (trial(static_cast<Index>(k)) - value);
      }
      if (step >= 1) break;
      std::erase_if(free, [&](Index j) {
        if (v(j) > 1e-14 * v.cwiseAbs().maxCoeff()) return false;
        v(j) = 0;
        is_free[static_cast<std::size_t>(j)] = false;
        return true;
      });
    }
  }
  return v;
}

class Solver {
 public:
  explicit Solver(const FitProblem& problem)
      : problem_(problem),
        rows_(static_cast<Index>(problem.rows.size())),
        columns_(static_cast<Index>(problem.parameters.size())) {
    std::vector<double> known;
    for (const FitRow& row : problem.rows) known.push_back(row.noise);
    known_noise_ = median_of(std::move(known));
  }

  Fit solve() {
    Fit result;
    for (const FitParameter& parameter : problem_.parameters)
      result.value.push_back(parameter.prior);
    count_rows(result);
    variance_ = 1e-9;
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<double> before = result.value;
      linearise(result.value, round == 0);
      result.value = step(result.value);
      result.noise = noise(result.value);
      variance_ = std::max(kLeastVariance, result.noise * result.noise);
      if (converged(before, result.value) && round > 2) break;
    }
    find_errors(result);
    return result;
  }

 private:
  void count_rows(Fit& result) const {
    result.rows.assign(problem_.parameters.size(), 0);
    for (const FitRow& row : problem_.rows) {
      for (const FitTerm& term : row.terms) {
        if (term.slope != 0 || term.product != 0) ++result.rows[term.parameter];
      }
    }
  }

  double model(std::size_t i, const std::vector<double>& value) const {
    return predict(problem_.rows[i], value, problem_.product);
  }
  double relative_residual(std::size_t i, const std::vector<double>& value) const {
    const double predicted = model(i, value);
    return (problem_.rows[i].measured - predicted) / (std::abs(predicted) + problem_.floor);
  }

  double noise(const std::vector<double>& value) const {
    std::vector<double> sizes;
    for (std::size_t i = 0; i < problem_.rows.size(); ++i)
      sizes.push_back(std::abs(relative_residual(i, value)));
    const double freedom =
        static_cast<double>(rows_) / static_cast<double>(std::max<Index>(1, rows_ - columns_));
    return std::max(known_noise_, kMadToSigma * median_of(std::move(sizes)) * std::sqrt(freedom));
  }

  // Computes the weighted matrix over u = θ / deviation, and the right-hand side, around `value`.
  // In the first iteration the model may be far off, so the measurements determine the weights.
  void linearise(const std::vector<double>& value, bool first) {
    matrix_ = MatrixXd::Zero(rows_, columns_);
    target_ = VectorXd::Zero(rows_);
    const double sigma = std::max(1e-9, first ? 0 : noise(value));
    for (Index i = 0; i < rows_; ++i) {
      const FitRow& row = problem_.rows[static_cast<std::size_t>(i)];
      const double predicted = model(static_cast<std::size_t>(i), value);
      const double size = std::abs(first ? row.measured : predicted) + problem_.floor;
      double weight = 1 / std::max(size, 1e-300);
      const double residual = std::abs(row.measured - predicted) * weight;
      if (!first && residual > kHuber * sigma) weight *= std::sqrt(kHuber * sigma / residual);
      double at_value = 0;
      for (const FitTerm& term : row.terms) {
        const double slope =
            term.slope + (problem_.product ? term.product * value[*problem_.product] : 0);
        matrix_(i, static_cast<Index>(term.parameter)) += slope;
        at_value += slope * value[term.parameter];
        if (!problem_.product) continue;
        const double through = term.product * value[term.parameter];
        matrix_(i, static_cast<Index>(*problem_.product)) += through;
        at_value += through * value[*problem_.product];
      }
      target_(i) = weight * (row.measured - predicted + at_value);
      matrix_.row(i) *= weight;
    }
    for (Index j = 0; j < columns_; ++j)
      matrix_.col(j) *= problem_.parameters[static_cast<std::size_t>(j)].deviation;
  }

  // Computes one regularized, bounded step, and halves it while the curvature of the product makes
  // the result worse.
  std::vector<double> step(const std::vector<double>& value) const {
    MatrixXd a(rows_ + columns_, columns_);
    VectorXd b(rows_ + columns_);
    VectorXd lower(columns_);
    VectorXd prior(columns_);
    for (Index j = 0; j < columns_; ++j) {
      const FitParameter& parameter = problem_.parameters[static_cast<std::size_t>(j)];
      lower(j) = parameter.lower / parameter.deviation;
      prior(j) = parameter.prior / parameter.deviation;
    }
    const double ridge = std::sqrt(variance_);
    a << matrix_, ridge * MatrixXd::Identity(columns_, columns_);
    b << target_ - matrix_ * lower, ridge * (prior - lower);
    const Eigen::HouseholderQR<MatrixXd> qr(a);
    const MatrixXd r = qr.matrixQR().topRows(columns_).triangularView<Eigen::Upper>();
    const VectorXd c = (qr.householderQ().transpose() * b).head(columns_);
    const VectorXd u = nonnegative(r, c) + lower;

    std::vector<double> next(value.size());
    double share = 1;
    for (int halving = 0; halving < 6; ++halving, share /= 2) {
      for (std::size_t j = 0; j < next.size(); ++j) {
        const double full = u(static_cast<Index>(j)) * problem_.parameters[j].deviation;
        next[j] = value[j] + share * (full - value[j]);
        // Conversion to units of the deviation and back may move a bound down by a rounding error.
        next[j] = std::max(next[j], problem_.parameters[j].lower);
      }
      if (!problem_.product || cost(next) <= cost(value) * (1 + 1e-9)) break;
    }
    return next;
  }

  // Robust: uses the sum of absolute relative errors against the measurements.
  double cost(const std::vector<double>& value) const {
    double sum = 0;
    for (std::size_t i = 0; i < problem_.rows.size(); ++i) {
      sum += std::abs(problem_.rows[i].measured - model(i, value)) /
             (std::abs(problem_.rows[i].measured) + problem_.floor);
    }
    return sum;
  }

  bool converged(const std::vector<double>& before, const std::vector<double>& after) const {
    for (std::size_t j = 0; j < after.size(); ++j) {
      if (std::abs(after[j] - before[j]) >
          1e-12 * (std::abs(after[j]) + 1e-6 * problem_.parameters[j].deviation)) {
        return false;
      }
    }
    return true;
  }

  void find_errors(Fit& result) {
    linearise(result.value, false);
    MatrixXd normal = matrix_.transpose() * matrix_;
    normal.diagonal().array() += variance_;
    const MatrixXd covariance =
        variance_ * normal.ldlt().solve(MatrixXd::Identity(columns_, columns_));
    for (Index j = 0; j < columns_; ++j) {
      const double deviation = problem_.parameters[static_cast<std::size_t>(j)].deviation;
      result.standard_error.push_back(deviation *
                                      std::sqrt(std::clamp(covariance(j, j), 0.0, 1.0)));
      for (Index k = 0; k < columns_; ++k)
        result.covariance.push_back(deviation *
                                    problem_.parameters[static_cast<std::size_t>(k)].deviation *
                                    covariance(j, k));
    }
  }

  const FitProblem& problem_;
  Index rows_, columns_;
  double known_noise_ = 0;
  double variance_ = 0;
  MatrixXd matrix_;
  VectorXd target_;
};

}  // namespace

double predict(const FitRow& row, const std::vector<double>& value,
               std::optional<std::size_t> product) {
  double sum = row.offset;
  for (const FitTerm& term : row.terms) {
    sum += (term.slope + (product ? term.product * value[*product] : 0)) * value[term.parameter];
  }
  return sum;
}

Fit fit(const FitProblem& problem) {
  POLYPHONY_CHECK(problem.floor > 0, "floor " << problem.floor);
  for (const FitParameter& parameter : problem.parameters) {
    POLYPHONY_CHECK(parameter.deviation > 0 && parameter.prior >= parameter.lower,
                    "prior " << parameter.prior << ", deviation " << parameter.deviation);
  }
  return Solver(problem).solve();
}

}  // namespace polyphony::traces
