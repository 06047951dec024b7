// Linear layers in FP8 for plain references: the casts of shared/fp8_scaling.h, stated anew, and
// products of what the casts leave, with plain operators.
#pragma once

#include "exec/torch_pch.h"
#include "shared/fp8_scaling.h"

namespace polyphony::exec::testing {

// Returns x after a cast to FP8 and back, in the format of x, with one scale (tensorwise), or one
// for each row (rowwise).
torch::Tensor plain_cast(const torch::Tensor& x, torch::Dtype fp8, Fp8Scaling scaling);

// Returns x Wᵀ; its gradients are products of operands in FP8, too.
torch::Tensor plain_fp8_linear(const torch::Tensor& x, const torch::Tensor& weight,
                               Fp8Scaling scaling);

}  // namespace polyphony::exec::testing
