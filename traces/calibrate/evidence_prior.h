// The errors of a profile before a step time corrects them. They are the errors that the profile
// states, except for a device with a borrowed fit (shared/hardware/shipped_certainty.h).
//
// For a borrowed fit the residual is mostly due to the device and is the same for all layouts. It
// then stands for errors of the kernel efficiencies: each of them gets one additional deviation s,
// large enough that the step is as uncertain as the profile states.
//
//   own² = residual of each layout;  left² = residual² - own² = s² Σ_k (effect_k / error_k)²
//   error_k' = √(error_k² + s²), s at most kMostBorrowed
//
// Checked against published rows by `polyphony validate --fit-smallest`.
#pragma once

#include <vector>

#include "shared/hardware/shipped_certainty.h"

namespace polyphony::traces {

// Relative deviation of an efficiency about which nothing is known. Assumed, like kUnknown in
// certainty.h.
inline constexpr double kMostBorrowed = 0.5;

struct EvidencePrior {
  std::vector<double> widening;  // by error: error_k' / error_k, at least 1
  double own = 0;                // relative residual of each layout
};
// Returns the widening of each error and the residual of one layout. `effects`: the change of
// ln(step time) of a typical step per deviation of each error.
EvidencePrior evidence_prior(const std::vector<ParameterError>& errors,
                             const std::vector<double>& effects, Footing footing,
                             const Residuals& residuals);

}  // namespace polyphony::traces
