// Nonnegative, regularised, robust least squares for cost models that are linear in their
// parameters but for one product.
//   row i:  y_i ≈ m_i = offset_i + Σ_j (slope_ij + product_ij·θ_p) θ_j,  p the product parameter
//   minimise  Σ_i huber(((y_i − m_i) / (m_i + floor)) / σ) + Σ_j ((θ_j − prior_j) / deviation_j)²
//   over θ ≥ lower
// Noise is taken as relative, with σ its robust standard deviation found from the residuals, or
// the median of the rows' own where that is larger (few rows leave no residual), so that data
// without noise are reproduced and a direction the data do not inform keeps its prior.
// Gauss-Newton over the product; Lawson-Hanson for the bounds.
// Source: Huber 1981 §7 (k = 1.345, reweighting); Lawson & Hanson 1974 ch. 23 (bounds); ridge as a
// Gaussian prior: textbook.
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
  double product = 0;  // times the product parameter
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
  std::optional<std::size_t> product;  // which parameter
  double floor = 0;  // in units of the measurements: errors smaller than this are not told apart
};
struct Fit {
  std::vector<double> value;
  std::vector<double> standard_error;  // the prior's deviation where the data say nothing
  // Row by row, of all parameters; where the data say nothing, the prior's variance.
  std::vector<double> covariance;
  std::vector<std::size_t> rows;  // how many rows each parameter stands in
  double noise = 0;               // σ, relative
};
Fit fit(const FitProblem& problem);

double predict(const FitRow& row, const std::vector<double>& value,
               std::optional<std::size_t> product);

}  // namespace polyphony::traces
