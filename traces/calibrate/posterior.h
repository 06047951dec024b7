// What step times say of a profile's stated errors (shared/hardware/certainty.h): the most likely
// point, and what is left of the errors.
//   z_k         how many of its deviations error k is off by; before any evidence N(0, 1)
//   surprise_i  ln(measured / predicted) of row i by the profile as it is
//               = Σ_k effect_ik z_k + own_i · ε_i: effect_ik of one deviation of error k on ln step i
//               (shared/chance/belief.h), own_i what no parameter explains and the measurement's noise
//   minimise    Σ z² + Σ huber_c((surprise_i - Σ effect_ik z_k) / own_i) over low_k <= z_k <= high_k,
//               c = central(0.9, freedom): what the stated 90 % holds counts in full, what lies outside
//               pulls no harder for lying further
//   covariance  of z: (I + Eᵀ W E)⁻¹, W the rows' Huber weights over own²; an error that no row moves
//               keeps 1
//   unseen      each row by a fit to the others: its miss over its own deviation; the held-out error
//   outliers    rows whose miss is beyond central(kOutside, freedom), the furthest first, one at a time: left
//               out of the fit, and named by whoever asks
// Not modelled: effects that change with z (ask again at the new point), misses that rows share
// beyond their effects.
// Source: Gaussian linear model, textbook; Huber 1981 §7 (reweighting).
#pragma once

#include <cstddef>
#include <vector>

namespace polyphony::traces {

inline constexpr double kOutside = 0.999;

struct SurpriseRow {
  double surprise = 0;
  std::vector<double> effects;  // by error
  double own = 0;               // deviation
};
struct Posterior {
  std::vector<double> mean;                                    // of z
  std::vector<double> covariance;                              // row by row
  double deviation(const std::vector<double>& effects) const;  // of Σ effect z
  double shift(const std::vector<double>& effects) const;      // Σ effect · mean
};
struct UnseenRow {
  double miss = 0;       // ln(measured / predicted by the others)
  double deviation = 0;  // stated of it
  bool outlier = false;
};
struct PosteriorFit {
  Posterior posterior;
  std::vector<UnseenRow> unseen;  // by row
};
struct ZBounds {
  std::vector<double> low, high;  // by error; empty: none
};
PosteriorFit fit_posterior(const std::vector<SurpriseRow>& rows, std::size_t errors, int freedom,
                           const ZBounds& bounds = {});

// Lower triangular L of L Lᵀ = covariance, row by row: the columns are independent ways to be off.
std::vector<double> independent_ways(const std::vector<double>& covariance);

}  // namespace polyphony::traces
