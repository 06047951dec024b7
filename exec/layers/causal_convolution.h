// For layers whose rows read those before them in the sample: samples side by side, and the convolution
// by channel that goes before, or is, how their rows meet.
//   y[t, c] = Σ_j w[c, j] · x[t − (taps − 1) + j, c],  j from 0 to taps − 1, zeros before the first row
// All operators have gradients.
// Source: causal convolutions, van den Oord et al., arXiv 1609.03499, §2.1.
#pragma once

#include <functional>

#include "exec/attention/attention.h"

namespace polyphony::exec {

// x [n, L, C], weights [C, taps].
torch::Tensor causal_convolution(const torch::Tensor& x, const torch::Tensor& weights);

// [T, W] packed -> [T, W']. `part` takes samples [n, L, W] in fp32 at least, with zeros behind their
// last rows, to [n, L, W'], where a row must not read those behind it. The plan has rows.
torch::Tensor by_sample(const torch::Tensor& rows, const SequencePlan& plan,
                        const std::function<torch::Tensor(const torch::Tensor&)>& part);

}  // namespace polyphony::exec
