// Multiplies the rows that a part of a block adds to the residual stream by a learned vector
// (Module::layer_scale).
//   y [rows, H], weight w [H]: y∘w.  Backward: dy∘w; dw = Σ dy∘y over the rows, in fp32 or wider.
// The sum is computed with the input gradient and only the vector is queued, as in
// exec/autograd/norm.cpp. A trained scale saves y, a frozen one nothing.
// Source: Touvron et al., arXiv 2103.17239, §2.
#pragma once

#include "exec/autograd/linear.h"

namespace polyphony::exec {

torch::Tensor layer_scale(const Pass& pass, const torch::Tensor& y, LocalParameter* weight);

}  // namespace polyphony::exec
