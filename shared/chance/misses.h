// What a hardware profile knows about steps that were measured and that its parameters do not
// explain (KnownMiss), and what follows for another layout of the same model, data and precision.
//
//   m_i     ln(measured / predicted) of measurement i
//   k(A,B)  covariance of the misses of two layouts: R² exp(−own²(A,B) / 2R²), R the profile's
//           residual and own² = layout_error² · other + tensor_error² · tensor, with the doublings
//           and other choices in which A and B differ, as in layout_distance()
//           (shared/chance/belief.h), but the mean over modules, not the module that differs most:
//           only sums of differences make K positive definite. Choices that layout_distance()
//           ignores count as one each. A profile without layout_error: 0 unless A = B
//   K       k of all pairs of measurements, plus the variance of their noise on the diagonal
//   w       weights of the measurements in the miss of layout B: K⁻¹ k(·,B)
//   mean    Σ w_i m_i, the miss that is expected of layout B
//   left²   (R² − Σ w_i k(i,B)) · (ν + mᵀK⁻¹m) / (ν + n), the variance that is left: of a t process
//           with ν degrees of freedom (the profile's; 0: normal, without the factor), whose scale
//           the size of the n misses tells
//
// An error of a parameter moves the measured steps and layout B alike: of its effect on B, the
// weighted effects on the measurements are already in the misses, and only the rest is uncertain.
// Sources: Gaussian process regression, Rasmussen and Williams 2006, eq. 2.25 and 2.26; of a
// Student t, Shah et al., arXiv 1402.4306, eq. 6.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/certainty.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// Returns what must be equal for a miss to count: "language 7241732096 full; 32 samples, text
// 131072; bf16; 8 H100 a node, 450 GB/s, 50 GB/s", modules with their numbers of parameters and
// what of them trains, tokens of the typical batch, precision, cluster.
std::string measured_text(const Scenario& scenario);

// Returns what misses compare of a layout: everything else has its default value.
Layout compared_parts(const Layout& layout);

struct MissAt {
  double mean = 0;              // ln(step / predicted without it)
  double left = 0;              // deviation of what is still not explained
  std::vector<double> weights;  // by Certainty::misses; 0 for those of other scenarios
};

// The known misses of one scenario, for many layouts of it.
class Misses {
 public:
  // `certainty` must outlive this object.
  Misses(const Certainty& certainty, const Scenario& scenario)
      : Misses(certainty, certainty.misses.empty() ? "" : measured_text(scenario)) {}
  // `measured`: its measured_text().
  Misses(const Certainty& certainty, const std::string& measured);
  // Returns whether any miss is known, and the profile states a residual.
  bool any() const { return !places_.empty(); }
  // Returns what they say about a layout. Requires any().
  MissAt at(const Layout& layout) const;
  // Returns the factor of all times of a layout's step; 1 if no miss is known.
  double factor(const Layout& layout) const;
  // Returns a lower bound of factor() over all layouts, at most 1.
  double least_factor() const;

 private:
  const KnownMiss& known(std::size_t i) const { return certainty_.misses[places_[i]]; }
  double alike(const Layout& a, const Layout& b) const;  // k(A,B)

  const Certainty& certainty_;
  std::vector<std::size_t> places_;         // in Certainty::misses
  std::vector<std::vector<double>> lower_;  // L, K = L Lᵀ
  std::vector<double> surprise_;            // L⁻¹ m
};

}  // namespace polyphony
