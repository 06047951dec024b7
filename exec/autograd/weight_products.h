// The three products of a linear layer (exec/autograd/linear.h), in the format that its weight asks
// for (LocalParameter::fp8): that of its tensors, or FP8.
//   In FP8 both operands of each product are cast where they are used: x and W for y; dy and W for
//   dx; dy and x for dW. Gradients are in E5M2 if scales are tensorwise, everything else in E4M3
//   (shared/fp8_scaling.h). y may be summed with fewer bits, dx and dW may not: the choices of
//   Transformer Engine's recipes.
#pragma once

#include "exec/parameters/init.h"

namespace polyphony::exec {

// Returns x Wᵀ (+ b, unless null).
torch::Tensor output_product(const LocalParameter& weight, const LocalParameter* bias,
                             const torch::Tensor& x);
// Returns dy W.
torch::Tensor input_gradient(const LocalParameter& weight, const torch::Tensor& dy);
// Adds dyᵀ x to the weight's gradient.
void add_weight_gradient(LocalParameter& weight, const torch::Tensor& dy, const torch::Tensor& x);

// Returns true if a weight [out, in], as one rank holds it, can be computed in FP8.
bool fits_fp8(const Parameter& parameter, const torch::Tensor& value);

}  // namespace polyphony::exec
