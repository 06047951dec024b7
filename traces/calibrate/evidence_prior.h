// What a profile's errors are before a step time corrects them: as the profile states them, but on a
// device that borrows another one's fit. There the residual is mostly the device's, alike in every
// layout (shared/hardware/shipped_certainty.h), and stands for what its kernels' efficiencies are off by:
// one deviation for each of them, so large that the step is as uncertain as the profile says.
//   own² = residual of each layout;  left² = residual² - own² = s² Σ_k (effect_k / error_k)²
//   error_k' = √(error_k² + s²), s at most kMostBorrowed
// Held against published rows by `polyphony validate --fit-smallest`.
#pragma once

#include <vector>

#include "shared/hardware/shipped_certainty.h"

namespace polyphony::traces {

// Deviation of an efficiency about which nothing is known, assumed (as kUnknown in certainty.h).
inline constexpr double kMostBorrowed = 0.5;

struct EvidencePrior {
  std::vector<double> widening;  // by error, at least 1
  double own = 0;
};
// `effects`: of one deviation of each error on ln of a typical step.
EvidencePrior evidence_prior(const std::vector<ParameterError>& errors,
                             const std::vector<double>& effects, Footing footing,
                             const Residuals& residuals);

}  // namespace polyphony::traces
