#include "traces/calibrate/evidence_prior.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "shared/error.h"

namespace polyphony::traces {
namespace {

constexpr std::array<std::string_view, 5> kKernels = {
    "gemm_efficiency", "grouped_efficiency", "attention_efficiency", "early_attention_efficiency",
    "memory_efficiency"};

// Returns the deviation of an error of a single kernel efficiency, otherwise 0.
double kernel_error(const ParameterError& error) {
  if (error.size() != 1) return 0;
  const auto& [key, deviation] = *error.begin();
  return std::find(kKernels.begin(), kKernels.end(), key) == kKernels.end() ? 0
                                                                            : std::abs(deviation);
}

}  // namespace

EvidencePrior evidence_prior(const std::vector<ParameterError>& errors,
                             const std::vector<double>& effects, Footing footing,
                             const Residuals& residuals) {
  POLYPHONY_CHECK(errors.size() == effects.size(), "effects of another profile");
  EvidencePrior prior{std::vector<double>(errors.size(), 1.0), own_residual(footing, residuals)};
  const double whole = residual_on(footing, residuals);
  const double left = whole * whole - prior.own * prior.own;
  double slopes = 0;  // sum of squares of d ln step / d ln efficiency
  for (std::size_t k = 0; k < errors.size(); ++k)
    if (const double error = kernel_error(errors[k]); error > 0)
      slopes += effects[k] * effects[k] / (error * error);
  if (!(left > 0) || !(slopes > 0)) return prior;
  const double borrowed = std::min(kMostBorrowed, std::sqrt(left / slopes));
  for (std::size_t k = 0; k < errors.size(); ++k)
    if (const double error = kernel_error(errors[k]); error > 0)
      prior.widening[k] = std::hypot(error, borrowed) / error;
  return prior;
}

}  // namespace polyphony::traces
