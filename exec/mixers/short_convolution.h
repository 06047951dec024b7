// The gated short convolution, in place of attention (formula: shared/layers/short_convolution.h).
//   u = W_in n: for every channel [B, C, x];  out = W_out (C ∘ conv(B ∘ x))
//   Samples do not see each other. Each rank has whole channels. Gates and convolution are computed
//   in at least fp32. Only u is saved; the backward pass recomputes gates and convolution. Not
//   available with context parallelism, since a rank would need the rows just before its own.
// Source: LFM2, arXiv 2511.23404; huggingface/transformers, models/lfm2.
#pragma once

#include "exec/frame/frame.h"

namespace polyphony::exec {

// normed [rows, H] -> [rows, H].
torch::Tensor short_convolution(const Frame& frame, const Layer& layer,
                                const torch::Tensor& normed);

}  // namespace polyphony::exec
