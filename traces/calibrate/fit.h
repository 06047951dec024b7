// Nonnegative, regularized, robust least squares for cost models that are linear in their
// parameters, except for products with one of them.
//
//   row i:  y_i ≈ m_i = offset_i + Σ_j (slope_ij + product_ij·θ_p) θ_j,  p the product parameter
//   minimize  Σ_i huber(((y_i − m_i) / (m_i + floor)) / σ) + Σ_j ((θ_j − prior_j) / deviation_j)²
//   over θ ≥ lower
//
// Noise is relative. Its σ is the robust standard deviation of the residuals, or the median of the
// stated noise of the rows if that is larger (few rows leave no residual). Data without noise are
// therefore reproduced exactly, and a direction that the data do not inform keeps its prior.
//
// Method: Gauss-Newton over the product; Lawson-Hanson for the bounds. Source: Huber 1981 §7 (k =
// 1.345, reweighting); Lawson & Hanson 1974 ch. 23 (bounds); ridge as a Gaussian prior: textbook.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace polyphony::traces {

struct FitParameter {
  double prior = 0;
  double deviation = 1;  // of the prior
  double lower = 0;
};
struct FitTerm {
  std::size_t parameter = 0;
  double slope = 0;
  double product = 0;  // additional slope per unit of the product parameter
};
struct FitRow {
  double measured = 0;
  double offset = 0;
  std::vector<FitTerm> terms;
  double noise = 0;  // known relative deviation of `measured`
};
struct FitProblem {
  std::vector<FitParameter> parameters;
  std::vector<FitRow> rows;
  std::optional<std::size_t> product;  // index of the product parameter
  double floor = 0;  // in units of the measurements: smaller differences are not distinguished
};
struct Fit {
  std::vector<double> value;
  std::vector<double> standard_error;  // of uninformed parameters: the prior's deviation
  // [parameters, parameters], row-major; for uninformed parameters the prior's variance.
  std::vector<double> covariance;
  std::vector<std::size_t> rows;  // number of rows in which each parameter occurs
  double noise = 0;               // σ, relative
};
// Returns the parameters that minimize the objective above, with their errors.
Fit fit(const FitProblem& problem);

// Returns m_i of the row at the parameters `value`. `product`: index of the product parameter.
double predict(const FitRow& row, const std::vector<double>& value,
               std::optional<std::size_t> product);

}  // namespace polyphony::traces
