// Multi-head latent attention of a decoder block: keys and values of all heads are made of one
// narrow row a token, and of a rotated key part that all heads share.
//   q   norm(x Q↓) Q↑, or x Q↑ without a query rank;   c, r = x C↓;   k, v of a head = norm(c) C↑
//   Down-projections and their norms are whole on every tensor-parallel rank and see its own rows;
//   what they make comes together [T, rank] before the up-projections, which are cut by heads. It is
//   kept like that, so that nothing is gathered again.
// Kept and moved: shared/layers (latent kernels and sizes). Source: DeepSeek-V2, arXiv 2405.04434,
// §2.1.
#pragma once

#include "exec/layers/blocks.h"

namespace polyphony::exec {

torch::Tensor latent_attention(const Frame& frame, const Layer& layer, const torch::Tensor& normed);

}  // namespace polyphony::exec
