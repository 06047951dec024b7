// Corrects the stated errors of a profile (shared/hardware/certainty.h) by measured step times. The
// result is the most likely value of each error and the remaining uncertainty.
//
//   z_k         error k in units of its stated deviation; before any evidence N(0, 1)
//   surprise_i  ln(measured / predicted) of row i, predicted with the uncorrected profile
//               = Σ_k effect_ik z_k + own_i · ε_i. effect_ik: effect of one deviation of error k on
//               the logarithm of step time i (shared/chance/belief.h). own_i: the part that no
//               parameter explains, and the noise of the measurement
//   minimize    Σ z² + Σ huber_c((surprise_i - Σ effect_ik z_k) / own_i)
//               over low_k <= z_k <= high_k,
//               c = central(0.9, freedom): rows within the stated 90 % interval count in full; rows
//               outside do not pull harder the further away they are
//   covariance  of z: (I + Eᵀ W E)⁻¹, W the Huber weights of the rows over own². An error that no
//               row informs keeps the variance 1
//   unseen      each row compared with a fit to all other rows: its miss and the deviation of the
//               miss. This is the held-out error
//   outliers    rows whose miss is beyond central(kOutlierProbability, freedom), found one at a
//               time, the furthest first. They are left out of the fit and marked in the result
//
// Does not model effects that change with z (call it again at the new point), nor errors that rows
// share beyond their effects. Source: Gaussian linear model, textbook; Huber 1981 §7 (reweighting).
#pragma once

#include <cstddef>
#include <vector>

namespace polyphony::traces {

inline constexpr double kOutlierProbability = 0.999;

struct SurpriseRow {
  double surprise = 0;
  std::vector<double> effects;  // by error
  double own = 0;               // deviation of the part that no error explains
};
struct Posterior {
  std::vector<double> mean;                                    // of z
  std::vector<double> covariance;                              // of z, row-major
  double deviation(const std::vector<double>& effects) const;  // of Σ effect z
  double shift(const std::vector<double>& effects) const;      // Σ effect · mean
};
struct UnseenRow {
  double miss = 0;       // ln(measured / predicted by a fit to the other rows)
  double deviation = 0;  // predicted deviation of the miss
  bool outlier = false;
};
struct PosteriorFit {
  Posterior posterior;
  std::vector<UnseenRow> unseen;  // by row
};
struct ZBounds {
  std::vector<double> low, high;  // by error; empty: no bounds
};
// Returns the posterior of the errors. `errors`: their number. `freedom`: degrees of freedom of the
// t distribution that central() uses.
PosteriorFit fit_posterior(const std::vector<SurpriseRow>& rows, std::size_t errors, int freedom,
                           const ZBounds& bounds = {});

// Returns the lower triangular L with L Lᵀ = covariance, row-major. Its columns are independent
// directions of error.
std::vector<double> independent_ways(const std::vector<double>& covariance);

}  // namespace polyphony::traces
