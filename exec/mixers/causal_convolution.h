// Helpers for layers in which a row reads the rows before it in its sample: a causal convolution
// per channel, and padding of packed samples to a batch.
//   y[t, c] = Σ_j w[c, j] · x[t − (taps − 1) + j, c],  0 ≤ j < taps, zeros before the first row
// All operators are differentiable.
// Source: causal convolutions, van den Oord et al., arXiv 1609.03499, §2.1.
#pragma once

#include <functional>

#include "exec/attention/attention.h"

namespace polyphony::exec {

// x [n, L, C], weights [C, taps] -> [n, L, C].
torch::Tensor causal_convolution(const torch::Tensor& x, const torch::Tensor& weights);

// Applies `part` to packed rows, sample by sample: [T, W] -> [T, W']. `part` maps padded samples
// [n, L, W], in at least fp32 and with zeros after their last rows, to [n, L, W']; a row must not
// read rows after it. The plan must have rows.
torch::Tensor by_sample(const torch::Tensor& rows, const SequencePlan& plan,
                        const std::function<torch::Tensor(const torch::Tensor&)>& part);

}  // namespace polyphony::exec
