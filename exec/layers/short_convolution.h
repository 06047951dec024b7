// The gated short convolution in place of attention (shared/layers/short_convolution.h has its formula):
//   u = W_in n, of every channel [B, C, x] side by side;  out = W_out (C ∘ conv(B ∘ x))
//   Samples do not see each other. A rank has whole channels. Gates and convolution are computed in fp32
//   at least. Kept: u alone; the backward gates and convolves again. Not over a context group: a rank
//   would need the rows just before its own.
// Source: LFM2, arXiv 2511.23404; huggingface/transformers, models/lfm2.
#pragma once

#include "exec/layers/blocks.h"

namespace polyphony::exec {

torch::Tensor short_convolution(const Frame& frame, const Layer& layer,
                                const torch::Tensor& normed);

}  // namespace polyphony::exec
