// Merges two profiles of one device and software stack, weighting each by its certainty.
//
//   μ, Σ of the logarithms of the parameters, Σ = Σ_errors d dᵀ (shared/hardware/certainty.h). A
//   profile that states no error for a parameter contributes no information about it
//   Λ = Σ_a⁻¹ + Σ_b⁻¹ - Σ_0⁻¹,   μ = Λ⁻¹ (Σ_a⁻¹ μ_a + Σ_b⁻¹ μ_b - Σ_0⁻¹ μ_0)
//   0: the profile from which both were calibrated, which would otherwise count twice; omitted if
//      there is none
//
// Parameters that neither profile informs are taken from the first. The result has the larger
// residual, the jitter that was measured on more steps, and ranges that span both. Switches (nccl,
// fused parts) must be equal in both.
//
// Throws InputError if device, stack or switches differ, or if the common origin is more certain
// than both profiles. Source: product of Gaussians, textbook.
#pragma once

#include <optional>
#include <string>

#include "shared/hardware/hardware.h"

namespace polyphony::traces {

// Returns the merged profile under the name `name`. `origin`: the profile from which both were
// calibrated, if any.
HardwareProfile merge_profiles(const HardwareProfile& first, const HardwareProfile& second,
                               const std::optional<HardwareProfile>& origin,
                               const std::string& name);

}  // namespace polyphony::traces
