// Two profiles of one device and stack as one: what both know, weighed by how surely.
//   μ, Σ of the logarithms of the parameters, Σ = Σ_errors d dᵀ (shared/hardware/certainty.h); of a profile
//   that states no error of a parameter, nothing is known of it
//   Λ = Σ_a⁻¹ + Σ_b⁻¹ - Σ_0⁻¹,   μ = Λ⁻¹ (Σ_a⁻¹ μ_a + Σ_b⁻¹ μ_b - Σ_0⁻¹ μ_0)
//   0: the profile that both were calibrated from, which would count twice; left out where there is none
// Parameters that neither knows are the first's. The larger residual stays, the jitter of more steps,
// ranges that span both. Switches (nccl, fused parts) are the first's, and have to be the second's.
// Errors: InputError: other device, stack or switches; a common origin that knows more than both.
// Source: product of Gaussians, textbook.
#pragma once

#include <optional>
#include <string>

#include "shared/hardware/hardware.h"

namespace polyphony::traces {

HardwareProfile merge_profiles(const HardwareProfile& first, const HardwareProfile& second,
                               const std::optional<HardwareProfile>& origin,
                               const std::string& name);

}  // namespace polyphony::traces
